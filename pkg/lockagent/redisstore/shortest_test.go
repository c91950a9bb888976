package redisstore_test

import (
	"errors"
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
		for field := range s.raw.HGetAll(t.Context(), mutexKey+":holders").Val() {
			if strings.HasPrefix(field, "dead:") {
				t.Errorf("%s is left", field)
			}
		}
	})
}

func TestReleaseOverwritesNothingInPlaceOfTheHolders(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		ctx, store := t.Context(), s.open(t, agentenv.Mutex, resource)
		take(t, store, claim("a", 1))
		s.raw.Set(ctx, mutexKey+":holders", "mine", 0)
		_, err := store.Release(ctx, claim("a", 1))
		var failed *lockagent.StoreError
		if !errors.As(err, &failed) || failed.Code != lockagent.CodeWrongType {
			t.Errorf("got %v, want code %q", err, lockagent.CodeWrongType)
		}
		if got := s.raw.Get(ctx, mutexKey+":holders").Val(); got != "mine" {
			t.Errorf("the key of another is now %q", got)
		}
	})
}
