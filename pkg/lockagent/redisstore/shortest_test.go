package redisstore_test

import (
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
