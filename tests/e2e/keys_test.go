//go:build e2e

package e2e

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// hold is what Redis has of a mutex.
type hold struct {
	owner  string
	token  int64
	expiry time.Duration // by the boot clock
}

// mutexKey is the lock of the trial's namespace.
func (s *trial) mutexKey() string { return "lock:{" + s.namespace + "/" + lockName + "}" }

// held reads the mutex; false if it is free.
func (s *trial) held() (hold, bool) {
	s.t.Helper()
	ctx, key := s.t.Context(), s.mutexKey()
	owner, err := s.db.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return hold{}, false
	}
	if err != nil {
		s.t.Fatal(err)
	}
	grant, err := s.db.Get(ctx, key+":fence").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	words := strings.Fields(grant) // TOKEN OWNER …
	if len(words) < 2 || words[1] != owner {
		s.t.Fatalf("%s holds, but the latest grant is %q", owner, grant)
	}
	token, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	left, err := s.db.PTTL(ctx, key).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return hold{owner: owner, token: token, expiry: boot() + left}, true
}

// mustHold is held, and a failure if the mutex is free.
func (s *trial) mustHold() hold {
	s.t.Helper()
	h, ok := s.held()
	if !ok {
		s.t.Fatalf("%s is free", s.mutexKey())
	}
	return h
}

// waiters is the length of the queue.
func (s *trial) waiters() int {
	s.t.Helper()
	n, err := s.db.ZCard(s.t.Context(), s.mutexKey()+":queue").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return int(n)
}

// tokenText is how the file "held" shows a token.
func (h hold) tokenText() string { return strconv.FormatInt(h.token, 10) }
