package lockagent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

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

// A new revision that gets the lock and loses it again must not stop the old one
// each time.
func TestOldRevisionIsNotStoppedAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := yielded(t)
		r.third.term()
		r.restartInPlace()
		handedOver := time.Now()
		sleep(5 * time.Second)
		r.server.Drop(r.server.Holders()[0]) // the new one's, by a fault
		r.new.wantExit(lockagent.ExitLost, 15*time.Second)
		sleep(3 * time.Second)
		r.new = r.new.killed().init().start()
		sleep(2 * time.Second)
		r.old.wantPhase(lockagent.Holding)
		r.old.wantExit(lockagent.ExitYielded, time.Minute)
		if after := time.Since(handedOver); after < 30*time.Second {
			t.Errorf("the old app was stopped again after %s", after)
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
