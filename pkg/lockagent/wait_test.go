package lockagent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// other makes a holder or waiter that is no agent.
func other(t *testing.T, s *memstore.Server, owner string, ttl time.Duration) (*memstore.Store, lockagent.Claim) {
	t.Helper()
	store, claim := memstore.NewStore(s, agentenv.Mutex, "orders/etl"), lockagent.Claim{Owner: owner, Permits: 1, TTL: ttl}
	if _, err := store.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	return store, claim
}

func TestIdleWaiterSendsOneHeartbeatEachThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", 2*time.Hour)
		other(t, server, "ahead", 2*time.Hour) // so that this one is not the first in line
		p := newPod(t, server).init().start()
		before := len(p.store.Calls())
		sleep(time.Hour)
		p.wantPhase(lockagent.Waiting)
		if got, want := p.calls("acquire"), 1+360; got != want {
			t.Errorf("acquires in an hour = %d, want %d", got, want)
		}
		if got, want := len(p.store.Calls())-before, 360; got != want {
			t.Errorf("requests in an hour = %d, want %d: nothing but heartbeats", got, want)
		}
	})
}

// kubernetes#82960: an elector was healthy but never contended again.
func TestCaseB12WaitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		holder, claim := other(t, server, "other", time.Hour)
		p := newPod(t, server).init().start()
		p.store.Intercept(memstore.Refuse)
		for range 3 { // hours of outage; the holder has another network
			sleep(59 * time.Minute)
			if _, err := holder.Renew(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
		}
		p.wantPhase(lockagent.Waiting)
		p.wantRunning()
		if err := p.agent.Live(); err != nil {
			t.Errorf("live while waiting = %v, want nil", err)
		}
		if got := p.state().Error; got == nil || got.Code != lockagent.CodeUnreachable {
			t.Errorf("problem = %+v, want code %s", got, lockagent.CodeUnreachable)
		}
		if got := p.log.count("cannot go on"); got != 1 {
			t.Errorf("the outage was logged %d times, want once", got)
		}

		p.store.Intercept(nil)
		sleep(5 * time.Second)
		if got := p.state(); got.Error != nil || got.Position != 1 {
			t.Errorf("after the outage: problem %+v, position %d; want none, 1", got.Error, got.Position)
		}
		if _, err := holder.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.wantPhase(lockagent.Holding)
	})
}

// An answer that is lost may have been a grant: the same owner asks again, and at
// once, also when other requests have failed before.
func TestLostGrantIsTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init()
		p.store.Intercept(memstore.Refuse)
		p.start()
		sleep(time.Minute)
		first := true
		p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			do()
			if c.Op == "acquire" && first {
				first = false
				return errors.New("connection reset by peer")
			}
			return nil
		})
		sleep(5 * time.Second)
		p.wantPhase(lockagent.Holding)
		asked := p.sent("acquire")
		if len(asked) != 2 || asked[0] != asked[1] {
			t.Errorf("asked at %v, want twice at once", asked)
		}
		if got := p.state().Token; got != 1 {
			t.Errorf("token = %d, want 1: the grant whose answer was lost", got)
		}
	})
}

// The machine slept between request and answer: the hold would be lost already.
func TestGrantAfterItsEndIsNoHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init()
		late := true
		p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			do()
			if c.Op == "acquire" && late {
				late = false
				p.machine.suspend(24 * time.Second)
			}
			return nil
		})
		p.start()
		p.wantPhase(lockagent.Holding)
		p.wantHeld(true)
		if got, want := p.calls("acquire"), 2; got != want {
			t.Errorf("acquires = %d, want %d: once more with the same owner", got, want)
		}
		sleep(23 * time.Second) // the second request has a whole TTL of its own
		p.wantHeld(true)
	})
}

func TestNothingIsAcquiredWithoutARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p := newPod(t, memstore.NewServer(), outside, func(c *agentenv.Config) { c.StateDir = filepath.Join(file, "state") })
		p.start()
		sleep(time.Hour)
		p.wantRunning()
		p.wantPhase(lockagent.Waiting)
		if got := len(p.store.Calls()); got != 0 {
			t.Errorf("requests = %d, want none", got)
		}
		got := p.state().Error
		if got == nil || got.Code != lockagent.CodeStateDir || !strings.Contains(got.Message, file) {
			t.Errorf("problem = %+v, want code %s with the path", got, lockagent.CodeStateDir)
		}

		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		sleep(5 * time.Second)
		p.wantPhase(lockagent.Holding)
		if got := p.state().Error; got != nil {
			t.Errorf("problem = %+v, want none", got)
		}
	})
}

// The pauses of an outage stay within their bounds, whatever the dice say.
func TestRetriesBackOff(t *testing.T) {
	tests := map[string]struct {
		random   float64
		min, max int // acquires in ten minutes
	}{
		"shortest pauses": {random: 0, min: 6000, max: 6002}, // 100 ms
		"longest pauses":  {random: 0.999999999, min: 120, max: 130},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer()).init()
			p.random = tc.random
			p.store.Intercept(refuseAcquire)
			p.start()
			calls := p.store.Calls()
			if len(calls) != 3 {
				t.Fatalf("calls at once = %v, want listen, acquire, acquire", calls)
			}
			sleep(10 * time.Minute)
			if got := p.calls("acquire"); got < tc.min || got > tc.max {
				t.Errorf("acquires = %d, want %d to %d", got, tc.min, tc.max)
			}
			for _, c := range p.store.Calls() {
				if c.Owner != calls[0].Owner {
					t.Fatalf("owner %s after %s: it must stay the same", c.Owner, calls[0].Owner)
				}
			}
		})
	}
}

func refuseAcquire(ctx context.Context, c memstore.Call, do func()) error {
	if c.Op == "acquire" {
		return memstore.Refuse(ctx, c, do)
	}
	do()
	return nil
}

// What cannot be held must not be kept from others either: with a state folder
// that has become unwritable the agent would be granted the same hold for ever.
func TestGrantThatCannotBePutOnRecordIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		store, first := other(t, server, "first", time.Hour)
		p := newPod(t, server).init().start()
		if err := os.RemoveAll(p.cfg.StateDir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.cfg.StateDir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Release(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		sleep(time.Second)
		p.wantPhase(lockagent.Waiting)
		sleep(30 * time.Second)
		other(t, server, "next", time.Hour)
		if diff := cmp.Diff([]string{"next"}, server.Holders()); diff != "" {
			t.Errorf("holders (-want +got):\n%s", diff)
		}
		if got := p.state().Error; got == nil || got.Code != lockagent.CodeStateDir {
			t.Errorf("problem = %+v, want code %s", got, lockagent.CodeStateDir)
		}

		if err := os.Remove(p.cfg.StateDir); err != nil { // mended: the agent makes the folder
			t.Fatal(err)
		}
		sleep(30 * time.Second)
		if diff := cmp.Diff(1, len(server.Queue())); diff != "" {
			t.Errorf("queue (-want +got):\n%s", diff)
		}
	})
}

// A grant that came too late to be held, and was lost then, leaves nothing to the
// next one.
func TestNextHoldBeginsWhenItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		p := newPod(t, server).init()
		late := true
		p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			do()
			if c.Op == "acquire" && late {
				late = false
				p.machine.suspend(31 * time.Second)
				server.Advance(31 * time.Second)
				server.Give("orders/etl", "other", time.Minute)
			}
			return nil
		})
		p.start()
		p.wantPhase(lockagent.Waiting)
		sleep(61 * time.Second)
		p.wantPhase(lockagent.Holding)
		st := p.state()
		if got := time.Time(*st.AcquiredAt); got.Before(time.Time(st.Since).Add(-time.Millisecond)) {
			t.Errorf("acquired at %s, but held since %s", got, time.Time(st.Since))
		}
	})
}
