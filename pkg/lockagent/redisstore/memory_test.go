package redisstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

func TestRedisOutOfMemoryKeepsHoldsAndHandsThemOver(t *testing.T) {
	for _, kind := range []agentenv.Kind{agentenv.Mutex, agentenv.Semaphore} {
		t.Run(string(kind), func(t *testing.T) {
			s := startReal(t)
			store := s.open(t, kind, resource)
			holder, waiter, deaf, newcomer := claim("a", 1), claim("b", 1), claim("c", 1), claim("d", 1)
			token := take(t, store, holder)
			acquire(t, store, waiter)
			acquire(t, store, deaf)
			wakes := listen(t, store, waiter)
			outOfMemory(t, s)

			_, err := store.Acquire(t.Context(), newcomer)
			var failed *lockagent.StoreError
			if !errors.As(err, &failed) || failed.Code != lockagent.CodeOutOfMemory {
				t.Errorf("a newcomer gets %v, want code %q", err, lockagent.CodeOutOfMemory)
			}
			advanceOutOfMemory(t, s, ttl/2)
			if got := renew(t, store, holder); got.Outcome != lockagent.Held || got.Token != token {
				t.Errorf("the holder's renewal gives %+v, want token %d held", got, token)
			}
			s.raw.Del(t.Context(), store.Keys()[1]) // the fence: a renewal puts it back
			advanceOutOfMemory(t, s, ttl/3)
			if got := renew(t, store, holder); got.Outcome != lockagent.Held || got.Token != token {
				t.Errorf("the holder's second renewal gives %+v, want token %d held", got, token)
			}
			if got, err := store.Shorten(t.Context(), holder, ttl/2); err != nil || got.Outcome != lockagent.Held {
				t.Errorf("shorten gives %+v, %v", got, err)
			}
			if got := take(t, store, holder); got != token {
				t.Errorf("asking again gives token %d, want %d", got, token)
			}
			if got := acquire(t, store, waiter); got.Position != 1 {
				t.Errorf("the waiter's heartbeat gives %+v, want its place", got)
			}
			if !release(t, store, holder) {
				t.Error("the holder had nothing to release")
			}
			for w := range wakes {
				if w.Kind == lockagent.WakeOffer {
					break
				}
			}
			if got := renew(t, store, waiter); got.Outcome != lockagent.Held || got.Token <= token {
				t.Errorf("the waiter's renewal gives %+v, want a token above %d held", got, token)
			}
			if release(t, store, newcomer) {
				t.Error("the newcomer had something to release")
			}
			if !release(t, store, waiter) {
				t.Error("the waiter had nothing to release")
			}
		})
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
