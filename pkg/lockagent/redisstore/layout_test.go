package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

func TestHoldersSayWhoTheyAre(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for kind, lock := range lockKeys {
			store := s.open(t, kind, resource)
			a, b := claim("a", 1), claim("b", 1)
			b.Pod, b.Namespace, b.Node = "etl-0", "orders", "node-1"
			b.Workload, b.ReplicaSet, b.Revision = "uid-1", "uid-2", 7
			take(t, store, a)
			acquire(t, store, b)
			listen(t, store, b)
			release(t, store, a)
			token := renew(t, store, b).Token

			key := lock + ":holders"
			got := s.raw.HGetAll(t.Context(), key).Val()
			if got["b:since"] == "" {
				t.Error("since when b holds is not noted")
			}
			delete(got, "b:since")
			want := map[string]string{
				"b:token": itoa(token), "b:permits": "1", "b:pod": "etl-0", "b:namespace": "orders",
				"b:node": "node-1", "b:workload": "uid-1", "b:replicaset": "uid-2", "b:revision": "7",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", key, diff)
			}
			release(t, store, b)
		}
	})
}

func TestRenewalTellsThatAYieldIsAsked(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		take(t, store, claim("a", 1))
		if renew(t, store, claim("a", 1)).YieldAsked {
			t.Error("nobody has asked yet")
		}
		s.raw.HSet(t.Context(), mutexKey+":holders", "a:asked", "b")
		if !renew(t, store, claim("a", 1)).YieldAsked {
			t.Error("not told")
		}
		release(t, store, claim("a", 1))
		take(t, store, claim("a", 1))
		if renew(t, store, claim("a", 1)).YieldAsked {
			t.Error("the next hold has inherited the question")
		}
	})
}

func TestCaseB34EveryKeyExpires(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for kind, lock := range lockKeys {
			store := s.open(t, kind, resource)
			take(t, store, claim("a", 1))
			acquire(t, store, claim("b", 1))
			everyKeyExpires(t, s)
			if n := len(keys(t, s.raw)); n < 6 {
				t.Errorf("only %d keys: the test looks at too little", n)
			}
			for range 20 { // renewals keep every key, those of waiters too
				s.advance(t, ttl-10*time.Second)
				if got := renew(t, store, claim("a", 1)).Outcome; got != lockagent.Held {
					t.Fatalf("a's renewal gives %q", got)
				}
			}
			everyKeyExpires(t, s)
			release(t, store, claim("b", 1))
			release(t, store, claim("a", 1))
			if diff := cmp.Diff([]string{lock + ":fence"}, keys(t, s.raw)); diff != "" {
				t.Errorf("left when all have released (-want +got):\n%s", diff)
			}
			s.raw.FlushAll(t.Context())
		}
	})
}

// everyKeyExpires: the mutex with its hold, the fence in about a month, what else
// belongs to the lock in about an hour.
func everyKeyExpires(t *testing.T, s server) {
	t.Helper()
	for _, key := range keys(t, s.raw) {
		least, most := 55*time.Minute, time.Hour
		switch {
		case key == mutexKey:
			least, most = ttl-10*time.Second, ttl
		case strings.HasSuffix(key, ":fence"):
			least, most = 29*24*time.Hour, 30*24*time.Hour
		}
		if left := s.raw.PTTL(t.Context(), key).Val(); left < least || left > most {
			t.Errorf("%s expires in %s, want from %s to %s", key, left, least, most)
		}
	}
}

func TestCaseB34NothingIsLeftOfTheDead(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for _, kind := range []agentenv.Kind{agentenv.Mutex, agentenv.Semaphore} {
			store := s.open(t, kind, resource)
			take(t, store, claim("dead holder", 1))
			for _, owner := range []string{"dead waiter", "dead too"} {
				acquire(t, store, claim(owner, 1))
			}
			s.advance(t, ttl+time.Second)
			acquire(t, store, claim("a", 1)) // finds them dead, and holds
			release(t, store, claim("a", 1))
			if n := len(keys(t, s.raw)); n != 1 {
				t.Errorf("%s: left beside the fence: %q", kind, keys(t, s.raw))
			}
			s.raw.FlushAll(t.Context())
		}
	})
}

func TestCaseB34NothingIsLeftOfTheDeadBesideTheLiving(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Semaphore, resource)
		take(t, store, claim("alive", 2))
		take(t, store, claim("dead", 2))
		s.advance(t, ttl-10*time.Second)
		renew(t, store, claim("alive", 2))
		s.advance(t, ttl-10*time.Second)
		take(t, store, claim("b", 2))
		want := []string{"alive", "b"}
		for _, suffix := range []string{"", ":limits"} {
			if diff := cmp.Diff(want, s.raw.ZRange(t.Context(), semaphoreKey+suffix, 0, -1).Val()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", semaphoreKey+suffix, diff)
			}
		}
		for field := range s.raw.HGetAll(t.Context(), semaphoreKey+":holders").Val() {
			if strings.HasPrefix(field, "dead:") {
				t.Errorf("%s is left", field)
			}
		}
	})
}

func TestCaseB34NothingIsLeftOfAHolderThatHasReleased(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Semaphore, resource)
		take(t, store, claim("stays", 2))
		take(t, store, claim("goes", 2))
		s.raw.HSet(t.Context(), semaphoreKey+":holders", "goes:asked", "heir")
		release(t, store, claim("goes", 2))
		for field := range s.raw.HGetAll(t.Context(), semaphoreKey+":holders").Val() {
			if strings.HasPrefix(field, "goes:") {
				t.Errorf("%s is left", field)
			}
		}
	})
}
