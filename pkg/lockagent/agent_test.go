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

func TestHoldRenewRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start()
		p.wantPhase(lockagent.Holding)
		p.wantHeld(true)
		if got := p.state().Token; got != 1 {
			t.Errorf("token = %d, want 1", got)
		}

		sleep(5 * time.Minute)
		p.wantPhase(lockagent.Holding)
		if got, want := p.calls("renew"), 30; got != want {
			t.Errorf("renewals in 5m = %d, want %d", got, want)
		}

		if err := p.agent.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.wantPhase(lockagent.Released)
		p.wantHeld(false)
		if diff := cmp.Diff([]string(nil), p.server.Holders()); diff != "" {
			t.Errorf("holders after the release (-want +got):\n%s", diff)
		}
		if err := p.agent.Release(t.Context()); !errors.Is(err, lockagent.ErrNotHolding) {
			t.Errorf("second release = %v, want %v", err, lockagent.ErrNotHolding)
		}

		sleep(time.Hour)
		p.wantPhase(lockagent.Released) // final
		p.term()
		p.wantExit(lockagent.ExitOK, 0)
	})
}

func TestReleaseBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer())
		a := lockagent.New(p.cfg, p.store, lockagent.Options{Clock: p.machine})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("release before Run = %v, want its context's error", err)
		}
	})
}
