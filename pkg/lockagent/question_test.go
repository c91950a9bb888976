package lockagent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

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
