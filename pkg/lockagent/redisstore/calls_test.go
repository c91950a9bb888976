package redisstore_test

import (
	"sort"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
)

const (
	resource     = "orders/etl"
	mutexKey     = "lock:{orders/etl}"
	semaphoreKey = "semaphore:{orders/etl}"
)

var lockKeys = map[agentenv.Kind]string{agentenv.Mutex: mutexKey, agentenv.Semaphore: semaphoreKey}

func claim(owner string, permits int) lockagent.Claim {
	return lockagent.Claim{Owner: owner, Permits: permits, TTL: ttl}
}

// acquire fails the test on an error.
func acquire(t *testing.T, s *redisstore.Store, c lockagent.Claim) lockagent.Answer {
	t.Helper()
	a, err := s.Acquire(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func take(t *testing.T, s *redisstore.Store, c lockagent.Claim) int64 {
	t.Helper()
	a := acquire(t, s, c)
	if !a.Granted {
		t.Fatalf("%s is not granted: %+v", c.Owner, a)
	}
	return a.Token
}

func renew(t *testing.T, s *redisstore.Store, c lockagent.Claim) lockagent.Renewal {
	t.Helper()
	r, err := s.Renew(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func release(t *testing.T, s *redisstore.Store, c lockagent.Claim) bool {
	t.Helper()
	ended, err := s.Release(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

func listen(t *testing.T, s *redisstore.Store, c lockagent.Claim) <-chan lockagent.Wake {
	t.Helper()
	wakes, err := s.Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return wakes
}

func keys(t *testing.T, raw *redis.Client) []string {
	t.Helper()
	keys, err := raw.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(keys)
	return keys
}
