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

// A release that never becomes ready holds the lock and is undone: the pod of the
// old ReplicaSet, which now has the highest revision, gets it back.
func TestUndoGivesTheLockBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := yielded(t)
		r.third.term()
		r.restartInPlace()
		r.new.wantPhase(lockagent.Holding)
		sleep(time.Minute)
		r.server.Publish("web-rs-1", 3)
		r.new.wantExit(lockagent.ExitYielded, 11*time.Second) // the old one's next heartbeat
		r.new = r.new.killed().init().start()
		r.old.wantPhase(lockagent.Holding)
		sleep(time.Minute)
		r.old.wantPhase(lockagent.Holding)
		r.new.wantPhase(lockagent.Waiting)
	})
}

// The undo comes before the new one has asked: then the old one is the newest.
func TestUndoBeforeTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRollout(t)
		r.server.Publish("web-rs-1", 3)
		sleep(time.Minute)
		r.old.wantPhase(lockagent.Holding)
		r.old.wantRunning()
		r.wantKept()
	})
}

// The undo comes while the app is being stopped for the new one.
func TestUndoAfterTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := yielded(t)
		r.server.Publish("web-rs-1", 3)
		r.restartInPlace()
		r.untilOneHolds()
		sleep(2 * time.Minute)
		r.old.wantPhase(lockagent.Holding)
		r.third.wantPhase(lockagent.Waiting)
	})
}

// untilOneHolds restarts in place whichever revision ends.
func (r *rollout) untilOneHolds() {
	for range 120 {
		for _, p := range []**pod{&r.old, &r.new} {
			select {
			case <-(*p).code:
				sleep(3 * time.Second)
				*p = (*p).killed().init().start()
			default:
			}
		}
		sleep(time.Second)
	}
}

// A revision that cannot be read changes nothing, and is told once.
func TestRevisionCannotBeRead(t *testing.T) {
	faults := map[string]func(ctx context.Context) error{
		"refused": func(context.Context) error { return errors.New("connection refused") },
		"silent":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	}
	for name, fault := range faults {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer(), revision(1)).init()
			p.store.Intercept(func(ctx context.Context, c memstore.Call, do func()) error {
				if c.Op == "revision" {
					return fault(ctx)
				}
				do()
				return nil
			})
			p.start()
			sleep(5 * time.Minute)
			p.wantPhase(lockagent.Holding)
			p.wantMetric("holdfast_renew_failures_total", 0)
			if n := p.log.count("cannot read the revision"); n != 1 {
				t.Errorf("told %d times, want once\n%s", n, p.log)
			}
		})
	}
}

// Whoever does without handoff pays nothing for it.
func TestPlainLockReadsNoRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		p, q := newPod(t, server).init().start(), newPod(t, server).init().start()
		sleep(time.Minute)
		if n := p.calls("revision") + q.calls("revision"); n != 0 {
			t.Errorf("revisions read = %d, want none", n)
		}
		if got := server.Listeners(); len(got) != 1 {
			t.Errorf("listeners = %v, want the waiter alone", got)
		}
	})
}
