package lockagent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

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
