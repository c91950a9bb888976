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

func TestWaiterTakesTheOfferAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		holder, claim := other(t, server, "other", time.Hour)
		p := newPod(t, server).init().start()
		p.wantPhase(lockagent.Waiting)
		p.wantHeld(false)
		if got := p.state(); got.Position != 1 || got.Waiters != 1 {
			t.Errorf("position %d of %d, want 1 of 1", got.Position, got.Waiters)
		}
		sleep(3 * time.Second)
		if got := server.Listeners(); len(got) != 1 {
			t.Errorf("listeners while waiting = %v, want one", got)
		}
		if _, err := holder.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.wantPhase(lockagent.Holding)
		if got := server.Listeners(); len(got) != 0 {
			t.Errorf("listeners while holding = %v, want none: each is a connection", got)
		}
		if got := p.state(); got.Token != 2 || got.Position != 0 || got.Waiters != 0 {
			t.Errorf("token %d, position %d of %d; want 2, no position", got.Token, got.Position, got.Waiters)
		}
		p.wantMetric("holdfast_offers_confirmed_total", 1)
		p.wantMetric("holdfast_acquisitions_total", 1)
		p.wantMetric("holdfast_wait_seconds_sum", 3)
		sleep(time.Hour)
		p.wantPhase(lockagent.Holding)
	})
}

// operator-sdk#1305: an evicted pod kept the lock for minutes. A holder that
// crashed tells nobody; the first in line asks when its hold can
// have expired.
func TestCaseB19FirstInLineWakesWhenTheHoldExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", 17*time.Second)
		p := newPod(t, server).init().start()
		sleep(17*time.Second - time.Nanosecond)
		p.wantPhase(lockagent.Waiting)
		sleep(2 * time.Millisecond)
		p.wantPhase(lockagent.Holding)
	})
}

// The one that is told it is next has the same duty.
func TestNextInLineWakesWhenTheHoldExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		holder, claim := other(t, server, "other", time.Hour)
		ahead, claimAhead := other(t, server, "ahead", time.Hour) // never answers its offer
		if _, err := ahead.Listen(t.Context(), claimAhead); err != nil {
			t.Fatal(err)
		}
		p := newPod(t, server).init().start()
		if got := p.state().Position; got != 2 {
			t.Fatalf("position = %d, want 2", got)
		}
		sleep(time.Second)
		if _, err := holder.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		sleep(2 * time.Second)
		if got := p.state().Position; got != 1 {
			t.Errorf("position once told = %d, want 1", got)
		}
		before := p.calls("acquire")
		sleep(time.Second + 2*time.Millisecond) // an offer lives for 3 s
		if got, want := p.calls("acquire"), before+1; got != want {
			t.Errorf("acquires when the offer had expired = %d, want %d", got, want)
		}
	})
}

func TestLostConfirmationIsTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		holder, claim := other(t, server, "other", time.Hour)
		p := newPod(t, server).init().start()
		p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			do()
			if c.Op == "renew" {
				return errors.New("connection reset by peer")
			}
			return nil
		})
		if _, err := holder.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.wantPhase(lockagent.Holding)
	})
}

// An offer that comes while a heartbeat is under way is confirmed after it.
func TestOfferDuringAHeartbeatIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		holder, claim := other(t, server, "other", time.Hour)
		p := newPod(t, server).init().start()
		p.store.Intercept(slow(2 * time.Second))
		sleep(11 * time.Second) // a heartbeat is answered at 12 s, with what was true at 10 s
		if _, err := holder.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		sleep(3 * time.Second)
		p.wantPhase(lockagent.Holding)
		p.wantMetric("holdfast_offers_confirmed_total", 1)
	})
}

func TestWakeUpsThatWereMissedAreMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		holder, claim := other(t, server, "other", time.Hour)
		ears := &deaf{Store: memstore.NewStore(server, agentenv.Mutex, "orders/etl"), wakes: make(chan lockagent.Wake, 1)}
		p := newPod(t, server).init()
		p.over = ears
		p.start()
		sleep(time.Second)
		if _, err := holder.Release(t.Context(), claim); err != nil { // nobody hears it
			t.Fatal(err)
		}
		synctest.Wait()
		p.wantPhase(lockagent.Waiting)
		ears.wakes <- lockagent.Wake{Kind: lockagent.WakeRetry}
		synctest.Wait()
		p.wantPhase(lockagent.Holding)
	})
}

// deaf hears no wake-up but those of the test.
type deaf struct {
	*memstore.Store
	wakes chan lockagent.Wake
}

func (d *deaf) Listen(context.Context, lockagent.Claim) (<-chan lockagent.Wake, error) {
	return d.wakes, nil
}

func TestChannelThatClosesIsOpenedAgain(t *testing.T) {
	tests := map[string]time.Duration{"between heartbeats": time.Second, "during a heartbeat": 11 * time.Second}
	for name, when := range tests {
		bubble(t, name, func(t *testing.T) {
			server := memstore.NewServer()
			holder, claim := other(t, server, "other", time.Hour)
			ears := &brittle{Store: memstore.NewStore(server, agentenv.Mutex, "orders/etl")}
			p := newPod(t, server).init()
			p.over = ears
			p.start()
			ears.Intercept(slow(2 * time.Second)) // the heartbeat of 10 s
			sleep(when)
			ears.breakDown()
			sleep(7 * time.Second)
			if _, err := holder.Release(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			sleep(2 * time.Second)
			p.wantPhase(lockagent.Holding)
		})
	}
}

// brittle is a store whose channel can close by itself.
type brittle struct {
	*memstore.Store
	breakDown context.CancelFunc
}

func (b *brittle) Listen(ctx context.Context, c lockagent.Claim) (<-chan lockagent.Wake, error) {
	ctx, b.breakDown = context.WithCancel(ctx)
	return b.Store.Listen(ctx, c)
}
