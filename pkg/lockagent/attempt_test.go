package lockagent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// ask is a gate that asks once.
func (p *pod) ask(gate string) {
	p.t.Helper()
	if err := p.agent.Attempt(p.t.Context(), gate); err != nil {
		p.t.Fatal(err)
	}
	synctest.Wait()
}

// acquired counts the owners that have asked for the lock: one for each attempt.
func (p *pod) acquired() int {
	owners := map[string]bool{}
	for _, c := range p.store.Calls() {
		owners[c.Owner] = owners[c.Owner] || c.Op == "acquire"
	}
	return len(owners)
}

// The kubelet's restart of the gate is the next attempt. A gate that asks twice, or
// that is the first to hear, does not begin one.
func TestAnotherGateIsAnotherAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		store, claim := other(t, server, "other", time.Hour)
		p := newPod(t, server, onBusyFail).init().start() // busy before any gate has asked
		steps := []struct {
			does         func()
			wantAttempts int
		}{
			{func() { p.ask("one") }, 1},
			{func() { p.ask("one") }, 1},
			{func() { p = p.killed().start() }, 0}, // counted from here on
			{func() { p.ask("one") }, 0},
			{func() { p.ask("two") }, 1},
			{func() { p.ask("two") }, 1},
		}
		for i, step := range steps {
			step.does()
			if got := p.acquired(); got != step.wantAttempts || !p.state().GaveUp() {
				t.Fatalf("step %d: %d attempts, problem %+v; want %d, busy", i, got, p.state().Error, step.wantAttempts)
			}
			p.wantNothingLeft()
		}
		if _, err := store.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		p.ask("three")
		p.wantPhase(lockagent.Holding)
		p.ask("four") // the container is run again beside a hold
		p.wantPhase(lockagent.Holding)
	})
}

// A gate that is killed while it waits has heard of nothing: the next one waits on,
// in the same place and no longer.
func TestAnotherGateWaitsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", 3*time.Hour)
		p := newPod(t, server, waitTimeout(time.Minute)).init().start()
		p.ask("one")
		before := server.Queue()
		sleep(30 * time.Second)
		p.ask("two")
		if diff := cmp.Diff(before, server.Queue()); diff != "" {
			t.Errorf("queue (-before +after):\n%s", diff)
		}
		sleep(30 * time.Second)
		p.wantGaveUp(lockagent.CodeWaitTimeout)

		p.ask("three")
		if st := p.state(); st.GaveUp() || st.Position != 1 {
			t.Errorf("state = %+v after another attempt began, want it in the queue", st)
		}
		sleep(time.Minute)
		p.wantGaveUp(lockagent.CodeWaitTimeout)
	})
}

// A restart of the whole pod begins anew, whatever became of the last attempt.
func TestRestartInPlaceIsAnotherAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		store, claim := other(t, server, "other", time.Hour)
		p := newPod(t, server, onBusyFail).init().start()
		p.ask("one")
		if _, err := store.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		p.killed().init().start().wantPhase(lockagent.Holding)
	})
}

// An agent that is killed while it leaves the queue is followed by one that leaves.
func TestGivingUpIsFinishedByTheNextAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", 3*time.Hour)
		p := newPod(t, server, onBusyFail).init()
		p.store.Intercept(func(ctx context.Context, c memstore.Call, do func()) error {
			if c.Op == "release" {
				return memstore.Silent(ctx, c, do)
			}
			do()
			return nil
		})
		p.start()
		p.ask("one")
		if p.state().GaveUp() || len(server.Queue()) != 1 {
			t.Fatalf("problem %+v, queue %v: want it still leaving", p.state().Error, server.Queue())
		}
		next := p.killed().start()
		sleep(time.Second)
		next.wantGaveUp(lockagent.CodeBusy)
		if diff := cmp.Diff(0, len(server.Queue())); diff != "" {
			t.Errorf("queue (-want +got):\n%s", diff)
		}
	})
}

func TestTermWhileGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", time.Hour)
		p := newPod(t, server, onBusyFail).init()
		p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			if c.Op == "release" && p.calls("release") == 1 {
				return errors.New("connection reset by peer")
			}
			do()
			return nil
		})
		p.start()
		p.term()
		p.wantExit(lockagent.ExitOK, 2*time.Second)
		p.wantNothingLeft()
	})
}

// A machine wakes up, and the gate's question is what wakes the agent, which finds
// that its hold has run out.
func TestAttemptThatMeetsTheAgentsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start()
		p.wantPhase(lockagent.Holding)
		p.machine.suspend(time.Minute)
		p.ask("one")
		p.wantExit(lockagent.ExitLost, 0)
	})
}

func TestAttemptOfAnAgentThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer(), outside).start()
		p.term()
		p.wantExit(lockagent.ExitOK, time.Second)
		p.ask("one")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		idle := lockagent.New(p.cfg, p.store, lockagent.Options{Clock: p.machine})
		if err := idle.Attempt(ctx, "one"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("attempt before Run = %v, want its context's error", err)
		}
	})
}
