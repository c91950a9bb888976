package lockagent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// other makes a holder or waiter that is no agent.
func other(t *testing.T, s *memstore.Server, owner string, ttl time.Duration) (*memstore.Store, lockagent.Claim) {
	t.Helper()
	store, claim := memstore.NewStore(s, agentenv.Mutex, "orders/etl"), lockagent.Claim{Owner: owner, Permits: 1, TTL: ttl}
	if _, err := store.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	return store, claim
}

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
		if _, err := holder.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.wantPhase(lockagent.Holding)
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

func TestIdleWaiterSendsOneHeartbeatEachThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", 2*time.Hour)
		other(t, server, "ahead", 2*time.Hour) // so that this one is not the first in line
		p := newPod(t, server).init().start()
		before := len(p.store.Calls())
		sleep(time.Hour)
		p.wantPhase(lockagent.Waiting)
		if got, want := p.calls("acquire"), 1+360; got != want {
			t.Errorf("acquires in an hour = %d, want %d", got, want)
		}
		if got, want := len(p.store.Calls())-before, 360; got != want {
			t.Errorf("requests in an hour = %d, want %d: nothing but heartbeats", got, want)
		}
	})
}

// kubernetes#82960: an elector was healthy but never contended again.
func TestCaseB12WaitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		holder, claim := other(t, server, "other", time.Hour)
		p := newPod(t, server).init().start()
		p.store.Intercept(memstore.Refuse)
		for range 3 { // hours of outage; the holder has another network
			sleep(59 * time.Minute)
			if _, err := holder.Renew(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
		}
		p.wantPhase(lockagent.Waiting)
		p.wantRunning()
		if err := p.agent.Live(); err != nil {
			t.Errorf("live while waiting = %v, want nil", err)
		}
		if got := p.state().Error; got == nil || got.Code != lockagent.CodeUnreachable {
			t.Errorf("problem = %+v, want code %s", got, lockagent.CodeUnreachable)
		}
		if got := p.log.count("cannot go on"); got != 1 {
			t.Errorf("the outage was logged %d times, want once", got)
		}

		p.store.Intercept(nil)
		sleep(5 * time.Second)
		if got := p.state(); got.Error != nil || got.Position != 1 {
			t.Errorf("after the outage: problem %+v, position %d; want none, 1", got.Error, got.Position)
		}
		if _, err := holder.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.wantPhase(lockagent.Holding)
	})
}

// A holder that crashed tells nobody. The first in line asks when its hold can
// have expired.
func TestFirstInLineWakesWhenTheHoldExpires(t *testing.T) {
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

// An answer that is lost may have been a grant: the same owner asks again.
func TestLostGrantIsTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init()
		first := true
		p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			do()
			if c.Op == "acquire" && first {
				first = false
				return errors.New("connection reset by peer")
			}
			return nil
		})
		p.start()
		p.wantPhase(lockagent.Holding) // no time has passed
		if got := p.state().Token; got != 1 {
			t.Errorf("token = %d, want 1: the grant whose answer was lost", got)
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

// The machine slept between request and answer: the hold would be lost already.
func TestGrantAfterItsEndIsNoHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init()
		late := true
		p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			do()
			if c.Op == "acquire" && late {
				late = false
				p.machine.suspend(24 * time.Second)
			}
			return nil
		})
		p.start()
		p.wantPhase(lockagent.Holding)
		p.wantHeld(true)
		if got, want := p.calls("acquire"), 2; got != want {
			t.Errorf("acquires = %d, want %d: once more with the same owner", got, want)
		}
		sleep(23 * time.Second) // the second request has a whole TTL of its own
		p.wantHeld(true)
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
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		holder, claim := other(t, server, "other", time.Hour)
		ears := &brittle{Store: memstore.NewStore(server, agentenv.Mutex, "orders/etl")}
		p := newPod(t, server).init()
		p.over = ears
		p.start()
		ears.breakDown()
		sleep(time.Second)
		if _, err := holder.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.wantPhase(lockagent.Holding)
	})
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

func TestNothingIsAcquiredWithoutARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p := newPod(t, memstore.NewServer(), outside, func(c *agentenv.Config) { c.StateDir = filepath.Join(file, "state") })
		p.start()
		sleep(time.Hour)
		p.wantRunning()
		p.wantPhase(lockagent.Waiting)
		if got := len(p.store.Calls()); got != 0 {
			t.Errorf("requests = %d, want none", got)
		}
		got := p.state().Error
		if got == nil || got.Code != lockagent.CodeStateDir || !strings.Contains(got.Message, file) {
			t.Errorf("problem = %+v, want code %s with the path", got, lockagent.CodeStateDir)
		}

		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		sleep(5 * time.Second)
		p.wantPhase(lockagent.Holding)
		if got := p.state().Error; got != nil {
			t.Errorf("problem = %+v, want none", got)
		}
	})
}

// The pauses of an outage stay within their bounds, whatever the dice say.
func TestRetriesBackOff(t *testing.T) {
	tests := map[string]struct {
		random   float64
		min, max int // acquires in ten minutes
	}{
		"shortest pauses": {random: 0, min: 6000, max: 6002}, // 100 ms
		"longest pauses":  {random: 0.999999999, min: 120, max: 130},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPod(t, memstore.NewServer()).init()
				p.random = tc.random
				p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
					if c.Op == "acquire" {
						return errors.New("connection refused")
					}
					do()
					return nil
				})
				p.start()
				calls := p.store.Calls()
				if len(calls) != 3 {
					t.Fatalf("calls at once = %v, want listen, acquire, acquire", calls)
				}
				sleep(10 * time.Minute)
				if got := p.calls("acquire"); got < tc.min || got > tc.max {
					t.Errorf("acquires = %d, want %d to %d", got, tc.min, tc.max)
				}
				owners := map[string]bool{}
				for _, c := range p.store.Calls() {
					owners[c.Owner] = true
				}
				if diff := cmp.Diff(1, len(owners)); diff != "" {
					t.Errorf("owner ids (-want +got):\n%s", diff)
				}
			})
		})
	}
}
