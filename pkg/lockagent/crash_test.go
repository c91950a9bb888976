package lockagent_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// Whatever the moment in which an agent is killed, the pod has its lock again
// soon, and the queue has nobody who is not there.
func TestCrashAtEveryStep(t *testing.T) {
	type moment struct {
		op     string
		nth    int
		before bool // the request was never sent; else its answer was never seen
	}
	moments := map[string]moment{
		"before listen":            {"listen", 1, true},
		"after listen":             {"listen", 1, false},
		"before acquire":           {"acquire", 1, true},
		"after acquire":            {"acquire", 1, false},
		"before the first renewal": {"renew", 1, true},
		"after the first renewal":  {"renew", 1, false},
		"before a later renewal":   {"renew", 3, true},
		"after a later renewal":    {"renew", 3, false},
		"before release":           {"release", 1, true},
		"after release":            {"release", 1, false},
	}
	for name, m := range moments {
		for _, newEpoch := range []bool{true, false} {
			bubble(t, fmt.Sprintf("%s, new epoch %t", name, newEpoch), func(t *testing.T) {
				p := newPod(t, memstore.NewServer()).init()
				reached := stopAt(p, m.op, m.nth, m.before)
				p.start()
				if m.op == "release" {
					go func() { _ = p.agent.Release(t.Context()) }()
				}
				<-reached
				synctest.Wait()
				p = p.killed()
				if newEpoch {
					p.init()
				}
				p.start()
				sleep(30*time.Second + time.Millisecond)
				p.wantHoldsAlone()
			})
		}
	}
}

func (p *pod) wantHoldsAlone() {
	p.t.Helper()
	p.wantPhase(lockagent.Holding)
	if got := p.server.Holders(); len(got) != 1 {
		p.t.Errorf("holders = %v, want one", got)
	}
	if diff := cmp.Diff([]string(nil), p.server.Queue()); diff != "" {
		p.t.Errorf("queue (-want +got):\n%s", diff)
	}
}

// stopAt makes p's store stand still at the nth request of a kind.
func stopAt(p *pod, op string, nth int, before bool) (reached chan struct{}) {
	reached = make(chan struct{})
	seen := 0
	p.store.Intercept(func(ctx context.Context, c memstore.Call, do func()) error {
		if c.Op == op {
			seen++
		}
		if c.Op != op || seen != nth {
			do()
			return nil
		}
		if !before {
			do()
		}
		close(reached)
		<-ctx.Done()
		return ctx.Err()
	})
	return reached
}

// A record can be damaged and still be JSON.
func TestImpossibleDeadlineIsNotBelieved(t *testing.T) {
	for name, deadline := range map[string]time.Duration{
		"more than a TTL away": time.Hour + 30*time.Second + time.Millisecond,
		"centuries away":       math.MaxInt64,
		"before all time":      math.MinInt64,
	} {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer()).init().start().killed()
			right := regexp.MustCompile(`"deadlineNanoseconds":\d+`)
			p.writeRecord(right.ReplaceAllString(p.record(), fmt.Sprintf(`"deadlineNanoseconds":%d`, deadline)))
			p.store.Intercept(memstore.Silent)
			p.start()
			p.wantExit(lockagent.ExitLost, 0)
		})
	}
}

// A record that is there but cannot be read is of a hold, for all that is known.
func TestUnreadableRecordMayBeOfAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start().killed()
		path := filepath.Join(p.cfg.StateDir, "record.json")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil { // whoever may read everything cannot read this
			t.Fatal(err)
		}
		p.start()
		p.wantExit(lockagent.ExitLost, 0)
	})
}
