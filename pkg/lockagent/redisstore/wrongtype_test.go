package redisstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
)

// wrongTypes writes something that no lock has under each key of a lock.
var wrongTypes = map[string]func(context.Context, *redis.Client, string) error{
	"":            func(ctx context.Context, c *redis.Client, k string) error { return c.RPush(ctx, k, "mine").Err() },
	":fence":      func(ctx context.Context, c *redis.Client, k string) error { return c.RPush(ctx, k, "mine").Err() },
	":queue":      func(ctx context.Context, c *redis.Client, k string) error { return c.Set(ctx, k, "mine", 0).Err() },
	":waiters":    func(ctx context.Context, c *redis.Client, k string) error { return c.Set(ctx, k, "mine", 0).Err() },
	":heartbeats": func(ctx context.Context, c *redis.Client, k string) error { return c.Set(ctx, k, "mine", 0).Err() },
	":holders":    func(ctx context.Context, c *redis.Client, k string) error { return c.Set(ctx, k, "mine", 0).Err() },
	":limits":     func(ctx context.Context, c *redis.Client, k string) error { return c.Set(ctx, k, "mine", 0).Err() },
}

func TestKeyOfAWrongTypeIsReportedAndNotOverwritten(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for kind, lock := range lockKeys {
			store := s.open(t, kind, resource)
			for suffix, write := range wrongTypes {
				if !slices.Contains(store.Keys(), lock+suffix) {
					continue // a mutex has fewer
				}
				t.Run(lock+suffix, func(t *testing.T) {
					s.raw.FlushAll(t.Context())
					if err := write(t.Context(), s.raw, lock+suffix); err != nil {
						t.Fatal(err)
					}
					before := s.raw.Dump(t.Context(), lock+suffix).Val()
					reportsWrongType(t, everyCall(t, store))
					if s.raw.Dump(t.Context(), lock+suffix).Val() != before {
						t.Error("the key is overwritten")
					}
				})
			}
		}
	})
}

// reportsWrongType expects that of at least one call, and of none another error.
func reportsWrongType(t *testing.T, errs []error) {
	t.Helper()
	reported := 0
	for _, err := range errs {
		switch codeOf(err) {
		case lockagent.CodeWrongType:
			reported++
		case "":
		default:
			t.Errorf("got %v, want code %q", err, lockagent.CodeWrongType)
		}
	}
	if reported == 0 {
		t.Error("nothing is reported")
	}
}

// everyCall has two owners acquire, renew and release, as if nothing were wrong,
// so that every key would be used.
func everyCall(t *testing.T, store *redisstore.Store) []error {
	var errs []error
	for _, owner := range []string{"a", "b"} {
		_, err := store.Acquire(t.Context(), claim(owner, 1))
		errs = append(errs, err)
		_, err = store.Renew(t.Context(), claim(owner, 1))
		errs = append(errs, err)
	}
	for _, owner := range []string{"a", "b"} {
		_, err := store.Release(t.Context(), claim(owner, 1))
		errs = append(errs, err)
	}
	return errs
}

// codeOf is empty for no error.
func codeOf(err error) lockagent.Code {
	var failed *lockagent.StoreError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &failed):
		return failed.Code
	default:
		return "not a StoreError"
	}
}

func TestFenceThatIsNoCounterIsReported(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		for _, value := range []string{"mine", "9007199254740992", "17apples", " 17"} {
			s.raw.Set(t.Context(), mutexKey+":fence", value, 0)
			_, err := store.Acquire(t.Context(), claim("a", 1))
			if codeOf(err) != lockagent.CodeWrongType {
				t.Errorf("got %v, want code %q", err, lockagent.CodeWrongType)
			}
			if got := keys(t, s.raw); len(got) != 1 || s.raw.Get(t.Context(), got[0]).Val() != value {
				t.Errorf("something was written: %q", got)
			}
		}
	})
}
