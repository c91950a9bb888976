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
			for _, n := range []int{1, 2, 3, 4, 5, 6} { // all but the lock itself
				store := s.open(t, kind, resource)
				key := store.Keys()[n]
				t.Run(string(kind)+"/"+name+" without "+key, func(t *testing.T) {
					s.raw.FlushAll(t.Context())
					first := take(t, store, claim("a", 2))
					if kind == agentenv.Semaphore {
						first = take(t, store, claim("b", 2))
					}
					listen(t, store, claim("w", 2))
					acquire(t, store, claim("w", 2))
					s.raw.Del(t.Context(), key)
					step(t, store)
					for _, k := range keys(t, s.raw) {
						if left := s.raw.PTTL(t.Context(), k).Val(); left < time.Second {
							t.Errorf("%s expires in %s", k, left)
						}
					}
					release(t, store, claim("a", 2))
					release(t, store, claim("b", 2))
					release(t, store, claim("new", 2))
					if got := acquire(t, store, claim("w", 2)); !got.Granted || got.Token <= first {
						t.Errorf("the waiter gets %+v, want a token above %d", got, first)
					}
					if got := renew(t, store, claim("w", 2)).Outcome; got != lockagent.Held {
						t.Errorf("its renewal gives %q", got)
					}
				})
			}
		}
	}
}
