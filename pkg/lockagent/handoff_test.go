package lockagent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// revision makes the pod one of a Deployment's.
func revision(n int64) func(*agentenv.Config) {
	return func(c *agentenv.Config) {
		c.Handoff, c.Workload, c.ReplicaSet, c.Revision = agentenv.HandoffRollout, "web", fmt.Sprintf("web-rs-%d", n), n
		c.Pod.Name = fmt.Sprintf("web-%d", n)
	}
}

// rollout is a mutex that an old revision holds, and for which another workload's
// pod waits, and a new revision behind it.
type rollout struct {
	t               *testing.T
	server          *memstore.Server
	old, third, new *pod
	owner           string // the old one's
}

func newRollout(t *testing.T) *rollout {
	server := memstore.NewServer()
	r := &rollout{t: t, server: server}
	r.old = newPod(t, server, revision(1)).init().start()
	r.old.wantPhase(lockagent.Holding)
	r.owner = server.Holders()[0]
	r.third = newPod(t, server).init().start()
	r.new = newPod(t, server, revision(2)).init().start()
	r.new.wantPhase(lockagent.Waiting)
	return r
}

// yielded is once the old agent has stopped its app for the new revision.
func yielded(t *testing.T) *rollout {
	r := newRollout(t)
	r.old.wantExit(lockagent.ExitYielded, 2*time.Second+time.Millisecond)
	r.wantKept()
	return r
}

// restartInPlace is the kubelet starting the old pod's containers anew.
func (r *rollout) restartInPlace() *pod {
	r.t.Helper()
	r.old = r.old.killed().init().start()
	return r.old
}

// wantKept sees that the lock is the old owner's still.
func (r *rollout) wantKept() {
	r.t.Helper()
	if diff := cmp.Diff([]string{r.owner}, r.server.Holders()); diff != "" {
		r.t.Errorf("holders (-want +got):\n%s", diff)
	}
	r.third.wantPhase(lockagent.Waiting)
}

func (r *rollout) wantNewHolds() {
	r.t.Helper()
	r.new.wantPhase(lockagent.Holding)
	r.third.wantPhase(lockagent.Waiting)
}

// wantOldHoldsAgain, as if nobody had asked.
func (r *rollout) wantOldHoldsAgain() {
	r.t.Helper()
	r.old.wantPhase(lockagent.Holding)
	if got := r.old.state().Token; got != 1 {
		r.t.Errorf("token = %d, want 1: the hold has never ended", got)
	}
	r.wantKept()
	r.old.wantMetric("holdfast_yields_in_vain_total", 1)
	sleep(time.Minute)
	r.wantKept()
}

// gone is the new pod deleted while it waits.
func (r *rollout) gone() {
	r.t.Helper()
	r.new.term()
	r.new.wantExit(lockagent.ExitOK, 0)
}

// operator-sdk#920: the new pod waited for the lock of the old one, which was only
// to be deleted once the new one was ready.
func TestCaseB01NewRevisionTakesTheLockOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRollout(t)
		sleep(2*time.Second - time.Millisecond)
		r.old.wantHeld(true)
		r.old.wantExit(lockagent.ExitYielded, 2*time.Millisecond)
		if st := r.old.state(); st.State != lockagent.Yielding || st.Held || st.Token != 0 {
			t.Errorf("state = %+v, want yielding without a hold", st)
		}
		if got := r.old.read(r.old.cfg.Dir, "state.json"); !strings.Contains(got, `"state":"yielding","held":false`) {
			t.Errorf("state.json = %s, want it yielding", got)
		}
		sleep(8 * time.Second) // for the app to end
		r.wantKept()

		r.restartInPlace()
		r.wantNewHolds()
		if got := r.new.state().Token; got != 2 {
			t.Errorf("token = %d, want 2", got)
		}
		r.old.wantPhase(lockagent.Waiting)
		r.old.wantMetric("holdfast_yields_total", 1)
		r.old.wantMetric("holdfast_losses_total", 0)
		if got := r.server.Queue(); len(got) != 1 {
			t.Errorf("queue = %v, want the third alone while the heir may still have to answer", got)
		}
		sleep(3 * time.Second)
		if got := r.server.Queue(); len(got) != 2 || got[1] == r.owner {
			t.Errorf("queue = %v, want the old pod behind the third, as a new owner", got)
		}
		sleep(time.Hour)
		r.wantNewHolds()
		for log, want := range map[*logbook]string{
			r.new.log: "asked an older revision to yield holder=web-1 revision=2",
			r.old.log: "handed the lock over to=web-2 its_revision=2",
		} {
			if log.count(want) != 1 {
				t.Errorf("%q is not once in\n%s", want, log)
			}
		}
	})
}

// The kubelet may have restarted the agent alone: then the app may run, and the
// lock is nobody else's until it has ended.
func TestYieldingWithTheSameEpochEndsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := yielded(t)
		for range 3 {
			r.old = r.old.killed().start()
			r.old.wantExit(lockagent.ExitYielded, 0)
			r.old.wantPhase(lockagent.Yielding)
			if n := len(r.old.store.Calls()); n != 0 {
				t.Errorf("calls = %d, want none", n)
			}
			r.wantKept()
		}
		r.restartInPlace()
		r.wantNewHolds()
	})
}

func TestHeirGone(t *testing.T) {
	bubble(t, "before the holder hears of it", func(t *testing.T) {
		r := newRollout(t)
		sleep(time.Second)
		r.gone()
		sleep(time.Minute)
		r.old.wantPhase(lockagent.Holding)
		r.wantKept()
	})
	bubble(t, "while the holder asks whether it is there", func(t *testing.T) {
		r := newRollout(t)
		reached := stopAt(r.old, "renew", 1, true)
		<-reached
		synctest.Wait()
		r.gone()
		r.old.store.Intercept(nil)
		sleep(time.Minute)
		r.old.wantPhase(lockagent.Holding)
		r.wantKept()
	})
	bubble(t, "while the app is being stopped", func(t *testing.T) {
		r := yielded(t)
		r.gone()
		r.restartInPlace()
		r.wantOldHoldsAgain()
	})
	bubble(t, "by a crash, which nobody announces", func(t *testing.T) {
		r := yielded(t)
		r.new.killed()
		r.restartInPlace()
		r.wantOldHoldsAgain()
	})
	bubble(t, "while the lock is offered to it", func(t *testing.T) {
		r := yielded(t)
		reached := stopAt(r.new, "renew", 1, true)
		r.restartInPlace()
		<-reached
		r.new.killed()
		sleep(3*time.Second + 2*time.Millisecond)
		r.third.wantPhase(lockagent.Holding) // the next in line
	})
	bubble(t, "and another is there", func(t *testing.T) {
		r := yielded(t)
		next := newPod(t, r.server, revision(3)).init().start()
		r.gone()
		sleep(3 * time.Second)
		r.restartInPlace()
		next.wantPhase(lockagent.Holding)
		r.third.wantPhase(lockagent.Waiting)
	})
}

// Whatever the moment in which an old pod's agent is killed, the new one gets the
// lock, and nobody in between.
func TestCrashAtEveryStepOfAHandOver(t *testing.T) {
	type moment struct {
		op     string
		before bool
	}
	for name, m := range map[string]moment{
		"before the answer to the question is asked for": {"renew", true},
		"after it":             {"renew", false},
		"before the hand-over": {"transfer", true},
		"after it, unseen":     {"transfer", false},
	} {
		for _, newEpoch := range []bool{true, false} {
			bubble(t, fmt.Sprintf("%s, new epoch %t", name, newEpoch), func(t *testing.T) {
				r := newRollout(t)
				if m.op == "transfer" {
					r.old.wantExit(lockagent.ExitYielded, 3*time.Second)
					r.old = r.old.killed().init()
				}
				reached := stopAt(r.old, m.op, 1, m.before)
				if m.op == "transfer" {
					r.old.start()
				}
				<-reached
				synctest.Wait()
				r.old = r.old.killed()
				if newEpoch {
					r.old.init()
				}
				r.old.start()
				r.untilHandedOver()
			})
		}
	}
}

// untilHandedOver is a kubelet that restarts the old pod in place after each end.
func (r *rollout) untilHandedOver() {
	r.t.Helper()
	for range 60 {
		select {
		case <-r.old.code:
			sleep(3 * time.Second)
			r.restartInPlace()
		default:
		}
		if r.new.state().Held {
			break
		}
		r.third.wantPhase(lockagent.Waiting)
		sleep(time.Second)
	}
	r.wantNewHolds()
}

func TestStoreFailsDuringAHandOver(t *testing.T) {
	bubble(t, "answers to the last renewal are lost", func(t *testing.T) {
		r := newRollout(t)
		r.old.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			do()
			if c.Op == "renew" {
				return errors.New("connection reset by peer")
			}
			return nil
		})
		sleep(10 * time.Second)
		r.old.wantHeld(true)
		r.old.store.Intercept(nil)
		r.old.wantExit(lockagent.ExitYielded, 3*time.Second)
		r.restartInPlace()
		r.wantNewHolds()
	})
	bubble(t, "the answer to the transfer is lost", func(t *testing.T) {
		r := yielded(t)
		r.old = r.old.killed().init()
		r.old.store.Intercept(memstore.Deaf)
		r.old.start()
		r.wantNewHolds()
		sleep(10 * time.Second)
		r.old.store.Intercept(nil)
		sleep(10 * time.Second)
		r.wantNewHolds()
		r.old.wantPhase(lockagent.Waiting)
		r.old.wantMetric("holdfast_yields_total", 1)
	})
	bubble(t, "away at the transfer, and back before the hold ends", func(t *testing.T) {
		r := yielded(t)
		r.old = r.old.killed().init()
		r.old.store.Intercept(memstore.Refuse)
		r.old.start()
		sleep(27 * time.Second) // later than deadline - margin
		r.old.wantPhase(lockagent.Yielding)
		r.wantKept()
		r.old.store.Intercept(nil)
		sleep(2 * time.Second)
		r.wantNewHolds()
	})
	bubble(t, "away until the hold has ended", func(t *testing.T) {
		r := yielded(t)
		r.old = r.old.killed().init()
		r.old.store.Intercept(memstore.Refuse)
		r.old.start()
		sleep(30*time.Second + 2*time.Millisecond)
		r.third.wantPhase(lockagent.Holding) // the first in line
		r.old.wantPhase(lockagent.Waiting)
		r.old.store.Intercept(nil)
		sleep(10 * time.Second)
		r.old.wantRunning()
		if got := r.server.Queue(); len(got) != 2 {
			t.Errorf("queue = %v, want both revisions", got)
		}
	})
	bubble(t, "the hold ends before the pod has restarted", func(t *testing.T) {
		r := yielded(t)
		sleep(31 * time.Second)
		r.third.wantPhase(lockagent.Holding)
		r.restartInPlace().wantPhase(lockagent.Waiting)
		r.old.wantRunning()
	})
	bubble(t, "the note cannot be written", func(t *testing.T) {
		r := newRollout(t)
		if err := os.RemoveAll(r.old.cfg.StateDir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.old.cfg.StateDir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		sleep(10 * time.Second)
		r.old.wantHeld(true)
		r.old.wantRunning()
	})
}

// TERM to an agent that has the app stopped and the lock not handed over yet.
func TestTermWhileYielding(t *testing.T) {
	tests := map[string]struct {
		fault    func(context.Context, memstore.Call, func()) error
		gone     bool
		wantExit int
		new      lockagent.Phase
		third    lockagent.Phase
	}{
		"hands over": {
			fault:    notUntilTerm,
			wantExit: lockagent.ExitOK, new: lockagent.Holding, third: lockagent.Waiting,
		},
		"the answer is lost": {
			fault: func(_ context.Context, c memstore.Call, do func()) error {
				do()
				if c.Op == "transfer" {
					return errors.New("connection reset by peer")
				}
				return nil
			},
			wantExit: lockagent.ExitOK, new: lockagent.Holding, third: lockagent.Waiting,
		},
		"nothing is answered": {
			fault:    memstore.Refuse,
			wantExit: lockagent.ExitLost, new: lockagent.Waiting, third: lockagent.Waiting,
		},
		"the heir is gone": {
			fault: notUntilTerm, gone: true,
			wantExit: lockagent.ExitOK, new: lockagent.Waiting, third: lockagent.Holding,
		},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			r := yielded(t)
			r.old = r.old.killed().init()
			r.old.store.Intercept(tc.fault)
			r.old.start()
			if tc.gone {
				r.gone()
			}
			if name == "hands over" || tc.gone {
				r.old.store.Intercept(nil)
			}
			r.old.term()
			r.old.wantExit(tc.wantExit, 2*time.Second)
			sleep(time.Millisecond)
			if !tc.gone {
				r.new.wantPhase(tc.new)
			}
			r.third.wantPhase(tc.third)
		})
	}
}

// notUntilTerm refuses the first transfers.
func notUntilTerm(_ context.Context, c memstore.Call, do func()) error {
	if c.Op == "transfer" {
		return errors.New("connection refused")
	}
	do()
	return nil
}

func TestTerminatingHolderDoesNotYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRollout(t)
		r.old.prestop()
		sleep(20*time.Second + 500*time.Millisecond)
		r.old.wantHeld(true)
		r.old.wantRunning()
		r.wantKept()
		r.old.term() // its app has ended
		r.old.wantExit(lockagent.ExitLost, 0)
		r.wantNewHolds()
	})
}

// Without handoff a rollout waits for itself; with another workload it is none.
func TestWhoIsNotAsked(t *testing.T) {
	for name, tc := range map[string]struct{ old, new func(*agentenv.Config) }{
		"the holder has no handoff":      {func(*agentenv.Config) {}, revision(2)},
		"the waiter has none":            {revision(1), func(*agentenv.Config) {}},
		"the waiter has it switched off": {revision(1), func(c *agentenv.Config) { revision(2)(c); c.Handoff = agentenv.HandoffOff }},
		"the waiter is older":            {revision(2), revision(1)},
		"it is the same revision":        {revision(1), revision(1)},
		"it is another workload":         {revision(1), func(c *agentenv.Config) { revision(2)(c); c.Workload = "db" }},
		"the app would not be stopped":   {func(c *agentenv.Config) { revision(1)(c); notify(c) }, revision(2)},
	} {
		bubble(t, name, func(t *testing.T) {
			server := memstore.NewServer()
			old := newPod(t, server, tc.old).init().start()
			new := newPod(t, server, tc.new).init().start()
			sleep(2 * time.Minute)
			old.wantHeld(true)
			new.wantPhase(lockagent.Waiting)
		})
	}
}

// A push may be missed, and an agent that has adopted its hold has no channel yet.
func TestHolderHearsOfTheQuestion(t *testing.T) {
	tests := map[string]struct {
		prepare func(r *rollout)
		within  time.Duration
	}{
		"at once": {func(*rollout) {}, time.Millisecond},
		"by its renewal, when its channel cannot be opened": {func(r *rollout) {
			r.old = r.old.killed()
			r.old.store.Intercept(func(ctx context.Context, c memstore.Call, do func()) error {
				if c.Op == "listen" {
					return errors.New("connection refused")
				}
				do()
				return nil
			})
			r.old.start()
		}, 10 * time.Second},
		"at once, when it has adopted": {func(r *rollout) { r.old = r.old.killed().start() }, time.Millisecond},
		"soon, when it is asked while it adopts": {func(r *rollout) {
			sleep(1900 * time.Millisecond)
			r.old = r.old.killed()
			r.old.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
				do()
				if c.Op == "renew" {
					time.Sleep(time.Second)
				}
				return nil
			})
			r.old.start()
		}, 2 * time.Second},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			r := newRollout(t)
			asked := time.Now().Add(2 * time.Second)
			tc.prepare(r)
			sleep(time.Until(asked))
			r.old.wantExit(lockagent.ExitYielded, tc.within)
		})
	}
}

// A renewal that was sent before the question says nothing of it.
func TestQuestionWhileARenewalIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		old := newPod(t, server, revision(1)).init().start()
		sleep(8*time.Second + 50*time.Millisecond)
		newPod(t, server, revision(2)).init().start()
		old.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			do()
			if c.Op == "renew" {
				time.Sleep(time.Second)
			}
			return nil
		})
		sleep(2 * time.Second)
		old.wantHeld(true)
		old.wantExit(lockagent.ExitYielded, 2*time.Second)
	})
}

// A hold that is adopted once no app runs is handed over without starting it.
func TestAskedWhileRestartingHandsOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRollout(t)
		r.old = r.old.killed() // the pod restarts for another reason
		sleep(5 * time.Second)
		r.wantKept()
		r.old.init().start()
		r.wantNewHolds()
		r.old.wantRunning()
		r.old.wantPhase(lockagent.Waiting)
	})
}

// A new revision that gets the lock and loses it again must not stop the old one
// each time.
func TestOldRevisionIsNotStoppedAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := yielded(t)
		r.third.term()
		r.restartInPlace()
		sleep(5 * time.Second)
		r.server.Drop(r.server.Holders()[0]) // the new one's, by a fault
		r.new.wantExit(lockagent.ExitLost, 15*time.Second)
		r.old.wantPhase(lockagent.Waiting)
		sleep(10 * time.Second)
		r.old.wantPhase(lockagent.Holding)
		held := time.Now()
		r.new = r.new.killed().init().start()
		select {
		case <-r.old.code:
		case <-time.After(time.Minute):
			t.Fatal("the new revision does not get the lock back")
		}
		if ran := time.Since(held); ran < 2*time.Second {
			t.Errorf("the old app ran for %s only", ran)
		}
	})
}

// An heir whose app crashes has an agent that lives: nothing moves.
func TestCrashLoopingHeirKeepsTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := yielded(t)
		r.restartInPlace()
		sleep(time.Hour)
		r.wantNewHolds()
		r.old.wantRunning()
	})
}

// With permits, one pod of the workload yields at a time, and all do.
func TestRolloutOfASemaphore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		var old, all []*pod
		for range 3 {
			old = append(old, newPod(t, server, permits(3), revision(1)).init().start())
		}
		for range 3 {
			all = append(all, newPod(t, server, permits(3), revision(2)).init().start())
		}
		for range 3 {
			sleep(3 * time.Second)
			stopped := 0
			for i, p := range old {
				select {
				case code := <-p.code:
					if code != lockagent.ExitYielded {
						t.Errorf("exit code = %d, want %d", code, lockagent.ExitYielded)
					}
					stopped++
					old[i] = p.killed().init().start()
				default:
				}
			}
			if stopped != 1 {
				t.Fatalf("%d pods yielded at once, want one", stopped)
			}
			sleep(8 * time.Second) // until the next heartbeat
		}
		for _, p := range all {
			p.wantPhase(lockagent.Holding)
		}
		for _, p := range old {
			p.wantPhase(lockagent.Waiting)
		}
	})
}
