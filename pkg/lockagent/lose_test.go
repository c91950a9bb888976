package lockagent_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

func TestLossHasItsReason(t *testing.T) {
	tests := map[string]struct {
		happens    func(*pod)
		wantReason string
		within     time.Duration
	}{
		"the store forgot": {
			happens: func(p *pod) { p.server.Forget() }, wantReason: "gone", within: 10 * time.Second,
		},
		"another has it": {
			happens: func(p *pod) { p.server.Give("orders/etl", "other", time.Hour) }, wantReason: "taken", within: 10 * time.Second,
		},
		"no answer": {
			happens: func(p *pod) { p.store.Intercept(memstore.Silent) }, wantReason: "expired", within: 23500 * time.Millisecond,
		},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer()).init().start()
			tc.happens(p)
			p.wantExit(lockagent.ExitLost, tc.within)
			p.wantPhase(lockagent.Lost)
			want := &lockagent.Loss{At: lockagent.Timestamp(p.machine.Now()), Reason: tc.wantReason, Token: 1}
			if diff := cmp.Diff(want, p.state().LastLoss, sameTime); diff != "" {
				t.Errorf("last loss (-want +got):\n%s", diff)
			}
			p.wantMetric("holdfast_losses_total", 1)
			if p.state().Token != 0 {
				t.Error("a lost hold still shows its token")
			}

			next := p.killed().init().start() // all that the pod's next run can know
			if diff := cmp.Diff(want, next.state().LastLoss, sameTime); diff != "" {
				t.Errorf("last loss after a restart (-want +got):\n%s", diff)
			}
			if got, want := next.log.first(), "WARN the last hold was lost"; got != want {
				t.Errorf("first log line = %q, want %q", got, want)
			}
		})
	}
}

var sameTime = cmp.Transformer("time", func(t lockagent.Timestamp) string {
	b, _ := t.MarshalText()
	return string(b)
})

// With on-lost notify the app runs on, is told, and the agent queues anew.
func TestLossNotifiedQueuesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer(), notify).init().start()
		first := p.server.Holders()
		p.store.Intercept(memstore.Refuse)
		sleep(24*time.Second - time.Nanosecond) // 30 s - ttl/5
		p.wantHeld(true)
		sleep(time.Nanosecond)
		p.wantPhase(lockagent.Waiting)
		p.wantHeld(false)
		if diff := cmp.Diff(first, p.server.Holders()); diff != "" {
			t.Errorf("the app has the margin to stop, but the lock was given away (-want +got):\n%s", diff)
		}

		p.store.Intercept(nil)
		sleep(6*time.Second + 2*time.Millisecond) // the old hold expires by itself
		p.wantPhase(lockagent.Holding)
		p.wantHeld(true)
		if diff := cmp.Diff(first, p.server.Holders(), cmpopts.EquateEmpty()); diff == "" {
			t.Error("the new hold has the old owner id")
		}
		if got := p.state(); got.Token != 2 || got.LastLoss == nil {
			t.Errorf("token = %d, last loss = %v; want 2 and the loss", got.Token, got.LastLoss)
		}
		p.wantRunning()
	})
}

// An exit would stop nothing while the kubelet ends the pod anyway, and a new
// hold would be of no use.
func TestLossWhileThePodEndsDoesNotExit(t *testing.T) {
	tests := map[string]func(*agentenv.Config){"stop": ttl(30*time.Second, 6*time.Second), "notify": notify}
	for name, onLost := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer(), onLost).init().start()
			p.prestop()
			sleep(15 * time.Second)
			if got := p.calls("renew"); got != 1 {
				t.Errorf("renewals while ending = %d, want 1", got)
			}
			p.server.Forget()
			sleep(time.Minute)
			p.wantRunning()
			p.wantPhase(lockagent.Lost)
			p.wantHeld(false)
			if got := p.calls("acquire"); got != 1 {
				t.Errorf("acquired %d times, want 1: a lost hold is over", got)
			}
			p.term()
			p.wantExit(lockagent.ExitLost, time.Millisecond)
		})
	}
}

// What the last process' hook said is not about this one.
func TestMarkOfAnEarlierProcessIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init()
		p.prestop()
		p.start()
		p.server.Forget()
		p.wantExit(lockagent.ExitLost, 11*time.Second)
	})
}

// Whether the pod is ending is written in the state folder. When that is gone, a
// loss must not be taken for one in a pod that ends anyway.
func TestLossStopsTheAppAlsoWithoutAStateFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start()
		if err := os.RemoveAll(p.cfg.StateDir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.cfg.StateDir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p.server.Forget()
		p.wantExit(lockagent.ExitLost, 11*time.Second)
	})
}
