package redisstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Acquire and release have a short way for a mutex that nobody else wants. These
// are the cases that look like it and are not.

func TestFreeMutexIsOfferedToTheWaiterThatHasJustCome(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		take(t, store, claim("a", 1))
		acquire(t, store, claim("b", 1))
		release(t, store, claim("a", 1)) // tells nobody: b does not listen yet
		listen(t, store, claim("b", 1))
		if got := acquire(t, store, claim("newcomer", 1)); got.Granted || got.Position != 2 {
			t.Errorf("the newcomer gets %+v, want the place behind b", got)
		}
		if got := renew(t, store, claim("b", 1)).Outcome; got != lockagent.Held {
			t.Errorf("b's answer to the offer gives %q", got)
		}
	})
}

func TestHolderThatDiedIsForgottenByTheNext(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		take(t, store, claim("dead", 1))
		s.advance(t, ttl+time.Second)
		take(t, store, claim("a", 1))
		if got := s.raw.Get(t.Context(), mutexKey+":fence").Val(); strings.Contains(got, "dead") {
			t.Errorf("the latest grant is %q", got)
		}
	})
}

// An owner that was offered the lock behind two that did not listen gives it back
// when the first of them does.
func TestOfferGivenBackFromDeepInTheQueueLeavesIt(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		ctx, store := t.Context(), s.open(t, agentenv.Mutex, resource)
		take(t, store, claim("a", 1))
		for _, owner := range []string{"b", "c", "d"} {
			acquire(t, store, claim(owner, 1))
		}
		offered := listen(t, store, claim("d", 1))
		release(t, store, claim("a", 1))
		wakesWith(t, offered, lockagent.WakeOffer)
		wakes := listen(t, store, claim("b", 1))
		if !release(t, store, claim("d", 1)) {
			t.Error("d had no offer to give back")
		}
		wakesWith(t, wakes, lockagent.WakeOffer)
		for _, suffix := range []string{":queue", ":heartbeats"} {
			if got := s.raw.ZRange(ctx, mutexKey+suffix, 0, -1).Val(); !slices.Equal(got, []string{"b", "c"}) {
				t.Errorf("in %s are %q, want b and c", suffix, got)
			}
		}
		if got := s.raw.HLen(ctx, mutexKey+":waiters").Val(); got != 2 {
			t.Errorf("%d waiters are written down, want b and c", got)
		}
	})
}

// The same of the second in line: it is not told to be the next one, the third is.
func TestOfferGivenBackFromTheSecondPlaceTellsTheThird(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		take(t, store, claim("a", 1))
		for _, owner := range []string{"b", "c", "d"} {
			acquire(t, store, claim(owner, 1))
		}
		offered := listen(t, store, claim("c", 1))
		release(t, store, claim("a", 1))
		wakesWith(t, offered, lockagent.WakeOffer)
		first, third := listen(t, store, claim("b", 1)), listen(t, store, claim("d", 1))
		release(t, store, claim("c", 1))
		wakesWith(t, first, lockagent.WakeOffer)
		wakesWith(t, third, lockagent.WakeNext)
	})
}

// Who answers an offer is a waiter no longer.
func TestNothingIsLeftOfAWaiterThatHolds(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for kind, lock := range lockKeys {
			store := s.open(t, kind, resource)
			take(t, store, claim("a", 1))
			acquire(t, store, claim("b", 1))
			wakes := listen(t, store, claim("b", 1))
			release(t, store, claim("a", 1))
			wakesWith(t, wakes, lockagent.WakeOffer)
			renew(t, store, claim("b", 1))
			everyKeyExpires(t, s)
			if n := s.raw.Exists(t.Context(), lock+":queue", lock+":waiters", lock+":heartbeats").Val(); n > 0 {
				t.Errorf("%s: something is left of the waiter: %q", kind, keys(t, s.raw))
			}
			release(t, store, claim("b", 1))
		}
	})
}

// The second in line may be dead, or deaf: then the third is told.
func TestTheNextThatHearsIsTold(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for name, listens := range map[string]bool{"dead": true, "deaf": false} {
			store := s.open(t, agentenv.Mutex, resource)
			long := func(owner string) lockagent.Claim {
				c := claim(owner, 1)
				c.TTL = 2 * ttl
				return c
			}
			take(t, store, long("a"))
			wakes := listen(t, store, long("b"))
			acquire(t, store, long("b"))
			second := long(name)
			if listens {
				second = claim(name, 1)
				listen(t, store, second)
			}
			acquire(t, store, second)
			next := listen(t, store, long("c"))
			acquire(t, store, long("c"))
			s.advance(t, ttl+time.Second)
			release(t, store, long("a"))
			wakesWith(t, wakes, lockagent.WakeOffer)
			if after := wakesWith(t, next, lockagent.WakeNext).After; after < 2*time.Second || after > 4*time.Second {
				t.Errorf("%s: the third is to look after %s, want the offer's three seconds", name, after)
			}
			for _, owner := range []string{"b", "c", name} {
				release(t, store, long(owner))
			}
		}
	})
}

// A hand-off that finds a key of another kind in its way changes nothing.
func TestHandOffOverwritesNothing(t *testing.T) {
	for _, suffix := range []string{":fence", ":queue", ":waiters"} {
		onEach(t, func(t *testing.T, s server) {
			ctx, store := t.Context(), s.open(t, agentenv.Mutex, resource)
			take(t, store, claim("a", 1))
			wakes := listen(t, store, claim("b", 1))
			acquire(t, store, claim("b", 1))
			s.raw.Del(ctx, mutexKey+suffix)
			if err := wrongTypes[suffix](ctx, s.raw, mutexKey+suffix); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Release(ctx, claim("a", 1)); codeOf(err) != lockagent.CodeWrongType {
				t.Errorf("got %v, want code %q", err, lockagent.CodeWrongType)
			}
			if got := s.raw.Get(ctx, mutexKey).Val(); got != "a" {
				t.Errorf("%s: the lock is %q's, want still a's", suffix, got)
			}
			if len(wakes) > 0 {
				t.Errorf("%s: b hears %+v", suffix, <-wakes)
			}
		})
	}
}
