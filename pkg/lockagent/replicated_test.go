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

// A hold that too few replicas have would be another's after a fail-over: it is
// given back, and nothing more is asked in the name of its owner.
func TestHoldThatIsNotReplicatedIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		p := newPod(t, server).init()
		replicas := false
		p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			do()
			if c.Op == "acquire" && !replicas {
				sleep(2 * time.Second)
				return &lockagent.StoreError{Op: c.Op, Code: lockagent.CodeNotReplicated, Err: errors.New("0 of 1")}
			}
			return nil
		})
		p.start()
		sleep(11 * time.Second)
		p.wantPhase(lockagent.Waiting)
		if got := p.state().Error; got == nil || got.Code != lockagent.CodeNotReplicated {
			t.Errorf("problem = %+v, want code %s", got, lockagent.CodeNotReplicated)
		}
		replicas = true
		sleep(2 * time.Second)
		p.wantPhase(lockagent.Holding)

		released, acquired := map[string]bool{}, map[string]int{}
		for _, c := range p.store.Calls() {
			switch {
			case c.Op == "release":
				released[c.Owner] = true
			case released[c.Owner]:
				t.Errorf("%s is asked for an owner that has given its hold back", c.Op)
			case c.Op == "acquire":
				acquired[c.Owner]++
			}
		}
		if len(released) < 3 || len(acquired) != len(released)+1 {
			t.Errorf("%d owners gave back and %d asked, want some and one more", len(released), len(acquired))
		}
	})
}
