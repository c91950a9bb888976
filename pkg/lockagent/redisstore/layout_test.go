package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

func TestHoldersSayWhoTheyAre(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for kind := range lockKeys {
			store := s.open(t, kind, resource)
			a, b := claim("a", 1), claim("b", 1)
			a.Pod, a.Namespace, a.Node = "etl-1", "orders", "node-2"
			b.Pod, b.Namespace, b.Node = "etl-0", "orders", "node-1"
			b.Workload, b.ReplicaSet, b.Revision = "uid-1", "uid-2", 7
			token := take(t, store, a)
			wantGrant(t, s, kind, grant{"a", token, "pod=etl-1 namespace=orders node=node-2"})
			acquire(t, store, b)
			listen(t, store, b)
			release(t, store, a)
			token = renew(t, store, b).Token
			wantGrant(t, s, kind, grant{"b", token, "pod=etl-0 namespace=orders node=node-1 workload=uid-1 replicaset=uid-2 revision=7"})
			release(t, store, b)
		}
	})
}

func TestWaitersSayWhoTheyAreAndWhatTheyClaim(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for kind, lock := range lockKeys {
			store := s.open(t, kind, resource)
			b := claim("b", 3)
			b.Pod, b.Revision = "etl-0", 7
			take(t, store, claim("a", 1))
			acquire(t, store, b)
			expiry := int64(s.raw.ZScore(t.Context(), lock+":heartbeats", "b").Val())
			want := map[string]string{"b": itoa(expiry) + " 30000 3 0 pod=etl-0 revision=7"}
			if diff := cmp.Diff(want, s.raw.HGetAll(t.Context(), lock+":waiters").Val()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", lock, diff)
			}
			release(t, store, b)
			release(t, store, claim("a", 1))
		}
	})
}

// grant is what is written down of a hold.
type grant struct {
	Owner string
	Token int64
	Who   string
}

// wantGrant looks where a mutex' latest grant is, or a semaphore's of that owner.
func wantGrant(t *testing.T, s server, kind agentenv.Kind, want grant) {
	t.Helper()
	text := fmt.Sprintf("%d %s %s", want.Token, want.Owner, want.Who)
	key, got := lockKeys[kind]+":fence", ""
	if kind == agentenv.Mutex {
		got = s.raw.Get(t.Context(), key).Val()
	} else {
		text = fmt.Sprintf("%d %s", want.Token, want.Who)
		key = lockKeys[kind] + ":holders"
		got = s.raw.HGet(t.Context(), key, want.Owner).Val()
	}
	if got != text {
		t.Errorf("%s has %q, want %q", key, got, text)
	}
}

func TestCaseB34EveryKeyExpires(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for kind, lock := range lockKeys {
			store := s.open(t, kind, resource)
			take(t, store, claim("a", 1))
			acquire(t, store, claim("b", 1))
			everyKeyExpires(t, s)
			if got, want := len(keys(t, s.raw)), len(store.Keys())-1; got != want { // there is none of the other kind
				t.Errorf("%d keys, want all %d: the test looks at too little", got, want)
			}
			s.raw.Expire(t.Context(), lock+":fence", 2*time.Hour)
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
			take(t, store, claim("dead-holder", 1))
			for _, owner := range []string{"dead-waiter", "dead-too"} {
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
		if s.raw.HExists(t.Context(), semaphoreKey+":holders", "dead").Val() {
			t.Error("the dead one's grant is left")
		}
	})
}

func TestCaseB34NothingIsLeftOfAHolderThatHasReleased(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Semaphore, resource)
		take(t, store, claim("stays", 2))
		take(t, store, claim("goes", 2))
		release(t, store, claim("goes", 2))
		if got := s.raw.HKeys(t.Context(), semaphoreKey+":holders").Val(); len(got) != 1 || got[0] != "stays" {
			t.Errorf("the grants are of %q, want of the one that stays", got)
		}
	})
}
