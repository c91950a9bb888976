package lockagent_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// A release whose answer did not come in time may still be on its way when the
// next process of the agent holds. It must not end that hold (etcd#22082), so
// the next process goes by another owner id.
func TestLateReleaseDoesNotEndTheNextHold(t *testing.T) {
	tests := map[string]struct {
		prepare func(*pod) *pod // until TERM comes
		restart func(*pod) *pod // the next process
	}{
		"waiting": {
			func(p *pod) *pod { other(p.t, p.server, "other", 30*time.Second); return p.init().start() },
			func(p *pod) *pod { return p.start() },
		},
		"adopting": {
			func(p *pod) *pod {
				p = p.init().start().killed().init()
				p.store.Intercept(memstore.Silent)
				return p.start()
			},
			func(p *pod) *pod { return p.start() },
		},
		"holding outside a pod": {
			func(p *pod) *pod { outside(&p.cfg); return p.start() },
			func(p *pod) *pod { return p.start() },
		},
		"holding, the app has ended": {
			func(p *pod) *pod { p.init().start().prestop(); return p },
			func(p *pod) *pod { return p.init().start() },
		},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			p := tc.prepare(newPod(t, memstore.NewServer()))
			const late = 45 * time.Second
			p.store.Intercept(func(ctx context.Context, c memstore.Call, do func()) error {
				if c.Op == "release" {
					time.AfterFunc(late, do)
				}
				<-ctx.Done()
				return ctx.Err()
			})
			p.term()
			<-p.ended
			p = tc.restart(p.killed())
			sleep(40 * time.Second) // the old hold has ended at the latest
			p.wantPhase(lockagent.Holding)
			before := p.server.Holders()
			sleep(late)
			p.wantPhase(lockagent.Holding)
			if diff := cmp.Diff(before, p.server.Holders()); diff != "" {
				t.Errorf("holders after the late release (-before +after):\n%s", diff)
			}
		})
	}
}

// Beside an app that may run after all, a hold that may have been given back is
// none: the app is stopped.
func TestUnconfirmedReleaseIsNotAdoptedBesideTheApp(t *testing.T) {
	bubble(t, "the app may run", func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start()
		p.prestop()
		p.store.Intercept(memstore.Deaf)
		p.term()
		<-p.ended
		p = p.killed().start()
		p.wantExit(lockagent.ExitLost, 0)
	})
}
