package lockagent_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

func TestReleaseGoesOnUntilConfirmed(t *testing.T) {
	tests := map[string]struct {
		silent   time.Duration
		wantErr  string
		wantLeft int
	}{
		"the store comes back":    {silent: 12 * time.Second, wantLeft: 0},
		"the hold ends by itself": {silent: time.Hour, wantErr: `release "orders/etl": the store did not answer until the hold ended by itself`, wantLeft: 0},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer()).init().start()
			p.store.Intercept(memstore.Silent)
			done := make(chan error, 1)
			go func() { done <- p.agent.Release(t.Context()) }()
			synctest.Wait()
			p.wantPhase(lockagent.Released)
			p.wantHeld(false) // at once: the store may have done it
			sleep(tc.silent)
			p.store.Intercept(nil)
			got := ""
			if err := <-done; err != nil {
				got = err.Error()
			}
			if got != tc.wantErr {
				t.Errorf("release = %q, want %q", got, tc.wantErr)
			}
			if got := p.server.Holders(); len(got) != tc.wantLeft {
				t.Errorf("holders = %v, want %d", got, tc.wantLeft)
			}
			p.term()
			p.wantExit(lockagent.ExitOK, 0)
		})
	}
}

func TestReleaseWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", time.Hour)
		p := newPod(t, server).init().start()
		if got := fmt.Sprint(p.agent.Release(t.Context())); got != "not holding the lock" {
			t.Errorf("release while waiting = %s", got)
		}
		p.wantPhase(lockagent.Waiting)
	})
}

// The answer to a renewal that was under way does not bring the hold back.
func TestReleaseIsNotUndoneByALateRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start()
		p.store.Intercept(func(_ context.Context, _ memstore.Call, do func()) error {
			do()
			time.Sleep(2 * time.Second) // whatever the context says
			return nil
		})
		sleep(11 * time.Second) // the renewal is answered at 12 s
		go func() { _ = p.agent.Release(t.Context()) }()
		sleep(1500 * time.Millisecond)
		p.wantPhase(lockagent.Released)
		p.wantHeld(false)
		sleep(time.Minute)
		p.wantPhase(lockagent.Released)
	})
}
