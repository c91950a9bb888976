package lockagent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

func TestWaitTimeout(t *testing.T) {
	bubble(t, "ends the wait, and not sooner", func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", 3*time.Hour)
		p := newPod(t, server, waitTimeout(time.Minute)).init().start()
		sleep(time.Minute - time.Millisecond)
		if p.state().GaveUp() || p.state().Position != 1 {
			t.Fatalf("state = %+v before its time, want it in the queue", p.state())
		}
		sleep(time.Millisecond)
		p.wantGaveUp(lockagent.CodeWaitTimeout)
		p.wantMetric("holdfast_wait_timeouts_total", 1)
		if got, want := p.state().Error.Message, `"orders/etl" was not to be had within the wait-timeout of 1m0s`; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
	})
	bubble(t, "a hold in time stays", func(t *testing.T) {
		server := memstore.NewServer()
		store, claim := other(t, server, "other", time.Hour)
		p := newPod(t, server, waitTimeout(time.Minute)).init().start()
		sleep(59 * time.Second)
		if _, err := store.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		sleep(time.Hour)
		p.wantPhase(lockagent.Holding)
	})
	bubble(t, "counts over a suspended machine", func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", 3*time.Hour)
		p := newPod(t, server, waitTimeout(time.Hour)).init().start()
		p.machine.suspend(time.Hour)
		sleep(time.Second)
		p.wantGaveUp(lockagent.CodeWaitTimeout)
	})
	bubble(t, "says what was in the way", func(t *testing.T) {
		p := newPod(t, memstore.NewServer(), waitTimeout(time.Minute)).init()
		p.store.Intercept(func(ctx context.Context, c memstore.Call, do func()) error {
			if c.Op == "listen" { // so that nothing is ever asked for
				return memstore.Refuse(ctx, c, do)
			}
			return nil
		})
		p.start()
		sleep(time.Minute)
		p.wantGaveUp(lockagent.CodeWaitTimeout)
		if got := p.state().Error.Message; !strings.Contains(got, "connection refused") {
			t.Errorf("message %q, want it to have what the store said", got)
		}
	})
}

// How long a pod has waited is kept by whoever comes after a killed agent.
func TestTimeoutOverRestarts(t *testing.T) {
	tests := map[string]func(*pod) *pod{
		"of the agent alone":   func(p *pod) *pod { return p },
		"of the pod in place":  (*pod).init,
		"with a longer outage": func(p *pod) *pod { sleep(40 * time.Second); return p },
	}
	for name, restart := range tests {
		bubble(t, name, func(t *testing.T) {
			server := memstore.NewServer()
			other(t, server, "other", 3*time.Hour)
			p := newPod(t, server, waitTimeout(2*time.Minute)).init().start()
			begin := time.Now()
			sleep(time.Minute)
			next := restart(p.killed()).start()
			sleep(2*time.Minute - time.Since(begin) - time.Millisecond)
			if next.state().GaveUp() {
				t.Fatal("gave up before its time")
			}
			sleep(time.Millisecond + time.Second) // which is for requests of the agent before
			next.wantGaveUp(lockagent.CodeWaitTimeout)
		})
	}
	bubble(t, "of an agent that has left the queue", func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", 3*time.Hour)
		p := newPod(t, server, waitTimeout(2*time.Minute)).init().start()
		sleep(time.Minute)
		p.term()
		p.wantExit(lockagent.ExitOK, 2*time.Second)
		next := p.killed().start()
		sleep(time.Minute)
		next.wantGaveUp(lockagent.CodeWaitTimeout)
	})
	bubble(t, "the time was over meanwhile", func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", 3*time.Hour)
		next := newPod(t, server, waitTimeout(2*time.Minute)).init().start().killed()
		sleep(3 * time.Minute)
		next.start()
		sleep(time.Second)
		next.wantGaveUp(lockagent.CodeWaitTimeout)
	})
	bubble(t, "of the machine: the clock is another", func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", 3*time.Hour)
		p := newPod(t, server, waitTimeout(2*time.Minute)).init().start()
		sleep(time.Minute)
		next := p.killed()
		next.machine.bootID, next.machine.booted = "boot-2", time.Now()
		next.init().start()
		sleep(2*time.Minute - time.Millisecond)
		if next.state().GaveUp() {
			t.Fatal("gave up before its time, by a clock that had begun anew")
		}
		sleep(time.Millisecond)
		next.wantGaveUp(lockagent.CodeWaitTimeout)
	})
}

// After a loss the pod waits anew, and for as long as the first time.
func TestTimeoutCountsAnewAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		p := newPod(t, server, waitTimeout(time.Minute)).init().start()
		sleep(10 * time.Minute)
		server.Give("orders/etl", "other", 3*time.Hour)
		p.wantExit(lockagent.ExitLost, time.Minute)
		next := p.killed().init().start()
		sleep(time.Minute - time.Millisecond)
		if next.state().GaveUp() {
			t.Fatal("gave up before its time")
		}
		sleep(time.Millisecond)
		next.wantGaveUp(lockagent.CodeWaitTimeout)
	})
}

// Nothing stays of the hold of before the loss either, though nobody confirms it.
func TestTimeoutAfterALossWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer(), waitTimeout(5*time.Second)).init().start()
		p.store.Intercept(memstore.Refuse)
		p.wantExit(lockagent.ExitLost, time.Minute)
		next := p.killed().init()
		next.store.Intercept(memstore.Refuse)
		next.start()
		sleep(6 * time.Second)
		if next.state().GaveUp() || len(next.server.Holders()) != 1 {
			t.Fatal("it gave up while its old hold was alive")
		}
		sleep(next.cfg.TTL + 3*time.Second)
		next.wantGaveUp(lockagent.CodeWaitTimeout)
	})
}

// An agent whose holds are never replicated asks with a new owner each time, but
// waits no longer for that.
func TestTimeoutOfHoldsThatAreNotReplicated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer(), waitTimeout(time.Minute)).init()
		p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			do()
			if c.Op == "acquire" {
				time.Sleep(2 * time.Second)
				return &lockagent.StoreError{Op: c.Op, Code: lockagent.CodeNotReplicated, Err: errors.New("0 of 1")}
			}
			return nil
		})
		p.start()
		sleep(time.Minute - time.Millisecond)
		if p.state().GaveUp() {
			t.Fatal("gave up before its time")
		}
		sleep(2 * time.Second)
		p.wantGaveUp(lockagent.CodeWaitTimeout)
	})
}

// Once the app runs, no gate is left that could fail: an agent that gave up then
// would leave an app behind that never gets the lock back.
func TestNoGivingUpBesideARunningApp(t *testing.T) {
	tests := map[string]func(*agentenv.Config){"on-busy fail": onBusyFail, "wait-timeout": waitTimeout(time.Minute)}
	for name, change := range tests {
		bubble(t, name, func(t *testing.T) {
			server := memstore.NewServer()
			p := newPod(t, server, change, notify).init().start()
			server.Give("orders/etl", "other", 2*time.Hour)
			sleep(time.Hour)
			p.wantPhase(lockagent.Waiting)
			next := p.killed().start() // the agent alone: the app still runs
			sleep(time.Hour + time.Second)
			next.wantPhase(lockagent.Holding)
		})
	}
}
