package lockagent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

func onBusyFail(c *agentenv.Config) { c.OnBusy = agentenv.BusyFail }

func waitTimeout(d time.Duration) func(*agentenv.Config) {
	return func(c *agentenv.Config) { c.WaitTimeout = d }
}

// wantGaveUp checks that the agent has given up: it says why, and nothing of it is
// left in the store, now or later.
func (p *pod) wantGaveUp(want lockagent.Code) {
	p.t.Helper()
	st := p.state()
	if !st.GaveUp() || st.Error.Code != want || st.Position != 0 {
		p.t.Fatalf("state = %+v, problem %+v; want it given up with %s\n%s", st, st.Error, want, p.log)
	}
	p.wantPhase(lockagent.Waiting)
	p.wantHeld(false)
	p.wantNothingLeft()
	asked := len(p.store.Calls())
	sleep(time.Hour)
	if now := len(p.store.Calls()); now != asked {
		p.t.Errorf("%d requests after it has given up, want none", now-asked)
	}
	p.wantNothingLeft()
}

// wantNothingLeft checks that no owner of the pod's holds, waits or listens.
func (p *pod) wantNothingLeft() {
	p.t.Helper()
	ours := map[string]bool{}
	for _, c := range p.store.Calls() {
		ours[c.Owner] = true
	}
	for what, owners := range map[string][]string{
		"holds": p.server.Holders(), "waits": p.server.Queue(), "listens": p.server.Listeners(),
	} {
		for _, owner := range owners {
			if ours[owner] {
				p.t.Errorf("%s still %s\n%s", owner, what, p.log)
			}
		}
	}
}

func TestOnBusyFail(t *testing.T) {
	bubble(t, "a free lock is held", func(t *testing.T) {
		p := newPod(t, memstore.NewServer(), onBusyFail).init().start()
		p.wantPhase(lockagent.Holding)
		p.wantHeld(true)
	})
	bubble(t, "a lock that is held is busy at once", func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", 3*time.Hour)
		p := newPod(t, server, onBusyFail).init().start()
		p.wantGaveUp(lockagent.CodeBusy)
		p.wantRunning() // the gate fails, not the agent
		p.wantMetric("holdfast_busy_total", 1)
		p.ask("one")
		p.term()
		p.wantExit(lockagent.ExitOK, 0)
		if diff := cmp.Diff([]string{"acquire", "release"}, ops(p.store)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if p.log.count("give") > 0 { // there was nothing left to give back
			t.Errorf("its log is\n%s", p.log)
		}
	})
	bubble(t, "an agent outside a pod ends", func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", time.Hour)
		newPod(t, server, onBusyFail, outside).start().wantExit(lockagent.ExitBusy, 0)
	})
	bubble(t, "a store that does not answer is not busy", func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", time.Hour)
		p := newPod(t, server, onBusyFail).init()
		p.store.Intercept(memstore.Refuse)
		p.start()
		sleep(10 * time.Minute)
		if st := p.state(); st.GaveUp() || st.Error == nil || st.Error.Code != lockagent.CodeUnreachable {
			t.Fatalf("problem = %+v, want %s", st.Error, lockagent.CodeUnreachable)
		}
		p.store.Intercept(nil)
		sleep(5 * time.Second)
		p.wantGaveUp(lockagent.CodeBusy)
	})
}

func ops(s *memstore.Store) []string {
	var ops []string
	for _, c := range s.Calls() {
		ops = append(ops, c.Op)
	}
	return ops
}

// The own hold of before a loss is no reason to fail: it goes first, or runs out.
func TestOwnOldHoldIsNotBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer(), onBusyFail).init().start()
		p.store.Intercept(memstore.Refuse)
		p.wantExit(lockagent.ExitLost, time.Minute)
		again := p.killed().init()
		again.store.Intercept(memstore.Refuse)
		again.start()
		sleep(2 * time.Second) // the old hold is alive still
		again.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			if len(again.sent("release")) == 1 {
				return errors.New("connection reset by peer")
			}
			do()
			return nil
		})
		sleep(10 * time.Second)
		again.wantPhase(lockagent.Holding)
	})
}

// Without the store's word the agent gives up only once the store must have
// forgotten what was asked for.
func TestTimeoutWhileTheStoreIsAway(t *testing.T) {
	tests := map[string]func(context.Context, memstore.Call, func()) error{
		"it is not there":                   memstore.Refuse,
		"it is silent":                      memstore.Silent,
		"it does what it does not answer":   memstore.Deaf,
		"it grants, and its answer is lost": grantAndLose,
	}
	for name, away := range tests {
		bubble(t, name, func(t *testing.T) {
			server := memstore.NewServer()
			holder, claim := other(t, server, "other", 3*time.Hour)
			p := newPod(t, server, waitTimeout(time.Minute)).init().start()
			sleep(55 * time.Second)
			p.store.Intercept(func(ctx context.Context, c memstore.Call, do func()) error {
				if c.Op == "release" {
					return memstore.Silent(ctx, c, do)
				}
				return away(ctx, c, do)
			})
			if _, err := holder.Release(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			sleep(6 * time.Second)
			if p.state().GaveUp() {
				t.Fatal("it gave up at the time-out, though the store may grant")
			}
			sleep(2*p.cfg.TTL - time.Second)
			p.wantGaveUp(lockagent.CodeWaitTimeout)
		})
	}
}

// A store that has stood still does all that has reached it, the release before
// the acquire that was sent before it.
func TestTimeoutOfAStoreThatStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		holder, claim := other(t, server, "other", 3*time.Hour)
		p := newPod(t, server, waitTimeout(22*time.Second)).init().start()
		sleep(15 * time.Second)
		const still = 15 * time.Second // from here on: a heartbeat is given up in it, and the time is over
		goesOn := time.Now().Add(still)
		p.store.Intercept(func(ctx context.Context, c memstore.Call, do func()) error {
			left := time.Until(goesOn)
			if left > 0 && c.Op == "acquire" {
				time.AfterFunc(left+10*time.Millisecond, do)
				return memstore.Silent(ctx, c, do)
			}
			select {
			case <-time.After(left):
				do()
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if _, err := holder.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		sleep(still + 5*time.Second)
		p.wantGaveUp(lockagent.CodeWaitTimeout)
	})
}

func grantAndLose(_ context.Context, _ memstore.Call, do func()) error {
	do()
	return errors.New("connection reset by peer")
}
