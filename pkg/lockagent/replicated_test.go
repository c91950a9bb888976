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

// claims notes with which token a renewal comes: one without begins a hold, and
// has the store wait for its replicas.
type claims struct {
	*memstore.Store
	renewedWith []int64
}

func (s *claims) Renew(ctx context.Context, c lockagent.Claim) (lockagent.Renewal, error) {
	s.renewedWith = append(s.renewedWith, c.Token)
	return s.Store.Renew(ctx, c)
}

// A grant has come too late, for the machine slept, and another has the lock. The
// offer that follows is a hold of its own, and not one that has begun before.
func TestOfferAfterAGrantThatCameTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		p := newPod(t, server).init()
		var next *memstore.Store
		var claim lockagent.Claim
		p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			if c.Op != "acquire" {
				do()
				return nil
			}
			if next == nil {
				do()
				p.machine.suspend(time.Minute)
				server.Advance(time.Minute)
				next, claim = other(t, server, "next", time.Hour)
				return nil
			}
			do()
			return errors.New("connection reset by peer")
		})
		store := &claims{Store: p.store}
		p.over = store
		p.start()
		if _, err := next.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.wantPhase(lockagent.Holding)
		if len(store.renewedWith) == 0 || store.renewedWith[0] != 0 {
			t.Errorf("renewed with the tokens %d, want the offer confirmed without one", store.renewedWith)
		}
	})
}
