package lockagent_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// A release, or the cut of a hold, whose answer did not come in time may still be
// on its way when the next process of the agent holds. It must not end that hold
// (etcd#22082), so the next process goes by another owner id.
func TestLateRequestDoesNotEndTheNextHold(t *testing.T) {
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
		"holding, in doubt": {
			func(p *pod) *pod { return p.init().start() },
			func(p *pod) *pod { return p.init().start() },
		},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			p := tc.prepare(newPod(t, memstore.NewServer()))
			const late = 45 * time.Second
			p.store.Intercept(func(ctx context.Context, c memstore.Call, do func()) error {
				if c.Op == "release" || c.Op == "shorten" {
					time.AfterFunc(late, do)
				}
				<-ctx.Done()
				return ctx.Err()
			})
			p.term()
			<-p.ended
			used := p.owner()
			p = tc.restart(p.killed())
			sleep(40 * time.Second) // the old hold has ended at the latest
			p.wantPhase(lockagent.Holding)
			if p.owner() == used {
				t.Error("the owner id is the one that the late request names")
			}
			before := p.server.Holders()
			sleep(late)
			p.wantPhase(lockagent.Holding)
			if diff := cmp.Diff(before, p.server.Holders()); diff != "" {
				t.Errorf("holders after the late release (-before +after):\n%s", diff)
			}
		})
	}
}

// owner is the owner id on record.
func (p *pod) owner() string {
	p.t.Helper()
	var rec struct{ Owner string }
	if err := json.Unmarshal([]byte(p.record()), &rec); err != nil {
		p.t.Fatal(err)
	}
	return rec.Owner
}

// Beside an app that may run after all, a hold that may have been given back, or
// cut, is none: the app is stopped.
func TestHoldThatMayBeEndingIsNotAdoptedBesideTheApp(t *testing.T) {
	for name, before := range map[string]func(*pod){
		"given back": func(p *pod) { p.prestop() },
		"cut":        func(*pod) {},
	} {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer()).init().start()
			before(p)
			p.store.Intercept(memstore.Silent)
			p.term()
			<-p.ended
			p = p.killed().start()
			p.wantExit(lockagent.ExitLost, 0)
			if loss := p.state().LastLoss; loss == nil || loss.Reason != "gone" {
				t.Errorf("last loss = %+v, want it gone", loss)
			}
		})
	}
}
