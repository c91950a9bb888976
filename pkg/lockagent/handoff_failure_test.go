package lockagent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

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
	bubble(t, "it restarts without its data, and has forgotten question, holder and queue", func(t *testing.T) {
		r := yielded(t)
		r.server.Forget()
		r.restartInPlace().wantPhase(lockagent.Holding) // it is the first to come
		if got := r.server.Holders(); len(got) != 1 || got[0] == r.owner {
			t.Errorf("holders = %v, want one, with another owner id than before", got)
		}
		r.untilHandedOver()
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
