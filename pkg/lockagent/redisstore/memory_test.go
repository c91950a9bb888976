package redisstore_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
)

func TestRedisOutOfMemoryGrantsNothingNew(t *testing.T) {
	for kind := range lockKeys {
		s := startReal(t)
		store := s.open(t, kind, resource)
		release(t, store, claim("a", 1))
		outOfMemory(t, s)
		_, err := store.Acquire(t.Context(), claim("a", 1))
		if codeOf(err) != lockagent.CodeOutOfMemory {
			t.Errorf("%s: got %v, want code %q", kind, err, lockagent.CodeOutOfMemory)
		}
		if got := keys(t, s.raw); len(got) > 0 {
			t.Errorf("%s: something was written: %q", kind, got)
		}
	}
}

func TestRedisOutOfMemoryKeepsHolds(t *testing.T) {
	for kind, lock := range lockKeys {
		t.Run(string(kind), func(t *testing.T) {
			s := startReal(t)
			store := s.open(t, kind, resource)
			token := take(t, store, claim("a", 1))
			held := claim("a", 1)
			held.Token = token
			outOfMemory(t, s)
			stillHeld := func(did string) {
				t.Helper()
				advanceOutOfMemory(t, s, ttl/2)
				if got := renew(t, store, held); got.Outcome != lockagent.Held || got.Token != token {
					t.Errorf("after %s a's renewal gives %+v, want token %d held", did, got, token)
				}
			}
			stillHeld("acquire")
			stillHeld("a renewal")
			s.raw.Expire(t.Context(), lock+":fence", time.Hour)
			stillHeld("a time in which no key was extended")
			s.raw.Del(t.Context(), lock+":fence")
			stillHeld("the loss of the fence, which a renewal puts back,")
			shorten(t, store, claim("a", 1), ttl*2/3)
			stillHeld("shorten")
			if got := take(t, store, claim("a", 1)); got != token {
				t.Errorf("asking again gives token %d, want %d", got, token)
			}
			if !release(t, store, claim("a", 1)) {
				t.Error("a had nothing to release")
			}
		})
	}
}

func TestRedisOutOfMemoryHandsHoldsOver(t *testing.T) {
	for kind := range lockKeys {
		t.Run(string(kind), func(t *testing.T) {
			s := startReal(t)
			store := s.open(t, kind, resource)
			token := take(t, store, claim("a", 1))
			acquire(t, store, claim("b", 1))
			wakes := listen(t, store, claim("b", 1))
			outOfMemory(t, s)

			if got := acquire(t, store, claim("b", 1)); got.Position != 1 {
				t.Errorf("b's heartbeat gives %+v, want it to keep its place", got)
			}
			release(t, store, claim("a", 1))
			wakesWith(t, wakes, lockagent.WakeOffer)
			if got := renew(t, store, claim("b", 1)); got.Outcome != lockagent.Held || got.Token <= token {
				t.Errorf("b's answer gives %+v, want a token above %d held", got, token)
			}
		})
	}
}

// Somebody who leaves finds a hold that has expired: it is offered all the same.
func TestRedisOutOfMemoryHandsExpiredHoldsOver(t *testing.T) {
	for kind := range lockKeys {
		t.Run(string(kind), func(t *testing.T) {
			s := startReal(t)
			store := s.open(t, kind, resource)
			take(t, store, claim("a", 1))
			waiter := claim("b", 1)
			waiter.TTL = 2 * ttl
			acquire(t, store, waiter)
			wakes := listen(t, store, waiter)
			outOfMemory(t, s)
			advanceOutOfMemory(t, s, ttl+time.Second)
			if release(t, store, claim("c", 1)) {
				t.Error("c had something to release")
			}
			wakesWith(t, wakes, lockagent.WakeOffer)
			if got := renew(t, store, waiter).Outcome; got != lockagent.Held {
				t.Errorf("b's answer gives %q", got)
			}
		})
	}
}

func shorten(t *testing.T, s *redisstore.Store, c lockagent.Claim, to time.Duration) {
	t.Helper()
	got, err := s.Shorten(t.Context(), c, to)
	if err != nil || got.Outcome != lockagent.Held {
		t.Fatalf("shorten gives %+v, %v", got, err)
	}
}

// outOfMemory leaves the server no room for anything new.
func outOfMemory(t *testing.T, s server) {
	t.Helper()
	if err := s.raw.ConfigSet(t.Context(), "maxmemory", "1kb").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.raw.Set(t.Context(), "x", "y", 0).Err(); err == nil {
		t.Fatal("the server still has memory: the test tests nothing")
	}
}

// advanceOutOfMemory gives the server memory while its data is changed.
func advanceOutOfMemory(t *testing.T, s server, d time.Duration) {
	t.Helper()
	if err := s.raw.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	s.advance(t, d)
	outOfMemory(t, s)
}
