package redisstore_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
)

// A Redis that evicts, or a hand that deletes, may take any key of a lock away.
// What is written afterwards expires nevertheless, tokens go on rising, and who
// waits gets its turn.
func TestCaseB34EveryKeyExpiresAlsoAfterOneWasLost(t *testing.T) {
	steps := map[string]func(*testing.T, *redisstore.Store){
		"acquire": func(t *testing.T, s *redisstore.Store) { acquire(t, s, claim("new", 2)) },
		"renew":   func(t *testing.T, s *redisstore.Store) { renew(t, s, claim("a", 2)) },
		"shorten": func(t *testing.T, s *redisstore.Store) {
			if _, err := s.Shorten(t.Context(), claim("a", 2), 5*time.Second); err != nil {
				t.Fatal(err)
			}
		},
		"release":   func(t *testing.T, s *redisstore.Store) { release(t, s, claim("a", 2)) },
		"heartbeat": func(t *testing.T, s *redisstore.Store) { acquire(t, s, claim("w", 2)) },
	}
	s := startReal(t)
	for _, kind := range []agentenv.Kind{agentenv.Mutex, agentenv.Semaphore} {
		for name, step := range steps {
			store := s.open(t, kind, resource)
			for _, key := range store.Keys()[1:] { // all but the lock itself
				t.Run(string(kind)+"/"+name+" without "+key, func(t *testing.T) {
					first := crowded(t, s, store, kind)
					s.raw.Del(t.Context(), key)
					step(t, store)
					wantExpiries(t, s)
					wantTurn(t, store, first)
				})
			}
		}
	}
}

// crowded has a semaphore's a and b, or a mutex' a, hold and w wait. It returns
// the newest token.
func crowded(t *testing.T, s server, store *redisstore.Store, kind agentenv.Kind) int64 {
	t.Helper()
	s.raw.FlushAll(t.Context())
	newest := take(t, store, claim("a", 2))
	if kind == agentenv.Semaphore {
		newest = take(t, store, claim("b", 2))
	}
	listen(t, store, claim("w", 2))
	acquire(t, store, claim("w", 2))
	return newest
}

func wantExpiries(t *testing.T, s server) {
	t.Helper()
	for _, key := range keys(t, s.raw) {
		if left := s.raw.PTTL(t.Context(), key).Val(); left < time.Second {
			t.Errorf("%s expires in %s", key, left)
		}
	}
}

// wantTurn sees w hold once all others have gone.
func wantTurn(t *testing.T, store *redisstore.Store, newest int64) {
	t.Helper()
	for _, owner := range []string{"a", "b", "new"} {
		release(t, store, claim(owner, 2))
	}
	if got := acquire(t, store, claim("w", 2)); !got.Granted || got.Token <= newest {
		t.Errorf("the waiter gets %+v, want a token above %d", got, newest)
	}
	if got := renew(t, store, claim("w", 2)).Outcome; got != lockagent.Held {
		t.Errorf("its renewal gives %q", got)
	}
}
