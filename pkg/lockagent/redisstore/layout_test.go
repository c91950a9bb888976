package redisstore_test

import (
	"context"
	"errors"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func TestMutexExcludesProgramsThatSetTheSameKey(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		ctx, store := t.Context(), s.open(t, agentenv.Mutex, resource)
		foreigner := func() bool { return s.raw.SetNX(ctx, mutexKey, "foreigner", ttl).Val() }

		take(t, store, claim("a", 1))
		if foreigner() {
			t.Error("the foreigner has the lock that a holds")
		}
		if got := s.raw.Get(ctx, mutexKey).Val(); got != "a" {
			t.Errorf("%s is %q, want the owner id", mutexKey, got)
		}
		release(t, store, claim("a", 1))
		if !foreigner() {
			t.Fatal("the foreigner cannot take the released lock")
		}

		got := acquire(t, store, claim("b", 1))
		want := lockagent.Answer{Position: 1, Waiters: 1, RetryAfter: time.Second, Limit: 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("behind a foreigner, who tells nobody of its release (-want +got):\n%s", diff)
		}
		if got := acquire(t, store, claim("c", 1)); got.RetryAfter <= time.Second {
			t.Errorf("the second in line is to look after %s too, want only the first to", got.RetryAfter)
		}
		if got := renew(t, store, claim("a", 1)).Outcome; got != lockagent.Taken {
			t.Errorf("a's renewal gives %q, want %q", got, lockagent.Taken)
		}
		if release(t, store, claim("a", 1)) || s.raw.Get(ctx, mutexKey).Val() != "foreigner" {
			t.Error("a has released the foreigner's lock")
		}
	})
}

func TestMutexHeldForEverByAnotherProgram(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		ctx, store := t.Context(), s.open(t, agentenv.Mutex, resource)
		s.raw.Set(ctx, mutexKey, "foreigner", 0)
		acquire(t, store, claim("a", 1))
		s.advance(t, ttl-10*time.Second)
		if got := acquire(t, store, claim("a", 1)); got.Position != 1 || got.RetryAfter != time.Second {
			t.Errorf("got %+v, want the first to look once a second", got)
		}
		if got := acquire(t, store, claim("b", 1)); got.Position != 2 || got.RetryAfter != 0 {
			t.Errorf("got %+v, want the second not to look", got)
		}
		if left := s.raw.PTTL(ctx, mutexKey).Val(); left != -1 {
			t.Errorf("the foreigner's key now expires in %s", left)
		}
	})
}

func TestSemaphoreExcludesProgramsThatUseTheSameSet(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		ctx, store := t.Context(), s.open(t, agentenv.Semaphore, resource)
		now := s.raw.Time(ctx).Val()
		s.raw.ZAdd(ctx, semaphoreKey, redis.Z{Score: float64(now.Add(2 * time.Hour).UnixMilli()), Member: "foreigner"})

		take(t, store, claim("a", 2))
		if got := acquire(t, store, claim("b", 2)); got.Granted || got.RetryAfter != time.Second {
			t.Errorf("got %+v, want to wait and look once a second: two hold, one of them a foreigner", got)
		}
		if left := s.raw.PTTL(ctx, semaphoreKey).Val(); left < 2*time.Hour-time.Minute {
			t.Errorf("the set expires in %s, before the foreigner's permit", left)
		}
		expiry := time.UnixMilli(int64(s.raw.ZScore(ctx, semaphoreKey, "a").Val()))
		if left := expiry.Sub(now); left < ttl || left > ttl+10*time.Second {
			t.Errorf("a's permit ends after %s by the server's clock, want %s", left, ttl)
		}
		// As such programs do: drop what has expired, here everything.
		s.raw.Del(ctx, semaphoreKey)
		for _, owner := range []string{"b", "c"} {
			take(t, store, claim(owner, 2))
		}
	})
}

func TestHoldersSayWhoTheyAre(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for _, kind := range []agentenv.Kind{agentenv.Mutex, agentenv.Semaphore} {
			store := s.open(t, kind, resource)
			a, b := claim("a", 1), claim("b", 1)
			b.Pod, b.Namespace, b.Node = "etl-0", "orders", "node-1"
			b.Workload, b.ReplicaSet, b.Revision = "uid-1", "uid-2", 7
			take(t, store, a)
			acquire(t, store, b)
			listen(t, store, b)
			release(t, store, a)
			token := renew(t, store, b).Token

			key := map[agentenv.Kind]string{agentenv.Mutex: mutexKey, agentenv.Semaphore: semaphoreKey}[kind] + ":holders"
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
		for _, kind := range []agentenv.Kind{agentenv.Mutex, agentenv.Semaphore} {
			store := s.open(t, kind, resource)
			take(t, store, claim("a", 1))
			acquire(t, store, claim("b", 1))
			expiries := func(atLeast time.Duration) {
				t.Helper()
				for _, key := range keys(t, s.raw) {
					want := atLeast
					if strings.HasSuffix(key, ":fence") {
						want = 29 * 24 * time.Hour
					}
					if left := s.raw.PTTL(t.Context(), key).Val(); left < want || left > 30*24*time.Hour {
						t.Errorf("%s expires in %s, want at least %s", key, left, want)
					}
				}
			}
			expiries(ttl - 10*time.Second)
			if n := len(keys(t, s.raw)); n < 6 {
				t.Errorf("only %d keys: the test looks at too little", n)
			}
			for range 20 { // renewals keep every key, also for who waits with a longer ttl
				s.advance(t, 20*time.Second)
				if got := renew(t, store, claim("a", 1)).Outcome; got != lockagent.Held {
					t.Fatalf("a's renewal gives %q", got)
				}
			}
			expiries(ttl - 10*time.Second)
			release(t, store, claim("b", 1))
			release(t, store, claim("a", 1))
			fence := map[agentenv.Kind]string{agentenv.Mutex: mutexKey, agentenv.Semaphore: semaphoreKey}[kind] + ":fence"
			if diff := cmp.Diff([]string{fence}, keys(t, s.raw)); diff != "" {
				t.Errorf("left when all have released (-want +got):\n%s", diff)
			}
			s.raw.Del(t.Context(), fence)
		}
	})
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

func TestFenceFollowsTheHighestToken(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		ctx, store := t.Context(), s.open(t, agentenv.Mutex, resource)
		ahead := s.raw.Time(ctx).Val().Add(time.Hour).UnixMicro()
		s.raw.Set(ctx, mutexKey+":fence", ahead, time.Hour)
		first := take(t, store, claim("a", 1))
		if first != ahead+1 {
			t.Errorf("token %d although the last one was %d", first, ahead)
		}
		// The counter is lost, as in a fail-over: a renewal puts it back.
		for name, lose := range map[string]func() error{
			"deleted":   func() error { return s.raw.Del(ctx, mutexKey+":fence").Err() },
			"went back": func() error { return s.raw.Set(ctx, mutexKey+":fence", 5, time.Hour).Err() },
		} {
			if err := lose(); err != nil {
				t.Fatal(err)
			}
			if got := renew(t, store, claim("a", 1)).Token; got != first {
				t.Errorf("%s: renewed with token %d, want %d", name, got, first)
			}
			if got := s.raw.Get(ctx, mutexKey+":fence").Val(); got != itoa(first) {
				t.Errorf("%s: the fence is %s after the renewal, want %d", name, got, first)
			}
		}
		release(t, store, claim("a", 1))
		if got := take(t, store, claim("b", 1)); got != first+1 {
			t.Errorf("token %d, want %d", got, first+1)
		}
	})
}

func TestTokensRiseThoughAllDataIsLost(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		before := take(t, store, claim("a", 1))
		s.raw.FlushAll(t.Context())
		s.advance(t, time.Millisecond)
		if after := take(t, store, claim("b", 1)); after <= before {
			t.Errorf("token %d after %d", after, before)
		}
	})
}

func TestTokenIsTimeInMicroseconds(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		before := s.raw.Time(t.Context()).Val().UnixMicro()
		token := take(t, store, claim("a", 1))
		if token < before || token > before+time.Minute.Microseconds() {
			t.Errorf("token %d, want a little above %d", token, before)
		}
		if got := s.raw.Get(t.Context(), mutexKey+":fence").Val(); got != itoa(token) {
			t.Errorf("the fence is %s, want %d: no digit may get lost", got, token)
		}
	})
}

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
		ctx := t.Context()
		for _, kind := range []agentenv.Kind{agentenv.Mutex, agentenv.Semaphore} {
			for suffix, write := range wrongTypes {
				s.raw.FlushAll(ctx)
				key := map[agentenv.Kind]string{agentenv.Mutex: mutexKey, agentenv.Semaphore: semaphoreKey}[kind] + suffix
				if err := write(ctx, s.raw, key); err != nil {
					t.Fatal(err)
				}
				before := s.raw.Dump(ctx, key).Val()
				store := s.open(t, kind, resource)
				var errs []error
				for _, owner := range []string{"a", "b"} {
					_, err := store.Acquire(ctx, claim(owner, 1))
					errs = append(errs, err)
					_, err = store.Renew(ctx, claim(owner, 1))
					errs = append(errs, err)
				}
				for _, owner := range []string{"a", "b"} {
					_, err := store.Release(ctx, claim(owner, 1))
					errs = append(errs, err)
				}
				if kind == agentenv.Mutex && suffix == ":limits" {
					continue // a mutex has none: the key is not looked at
				}
				reported := 0
				for _, err := range errs {
					var failed *lockagent.StoreError
					if err == nil {
						continue
					}
					if !errors.As(err, &failed) || failed.Code != lockagent.CodeWrongType {
						t.Errorf("%s: got %v, want code %q", key, err, lockagent.CodeWrongType)
					}
					reported++
				}
				if reported == 0 {
					t.Errorf("%s: nothing is reported", key)
				}
				if after := s.raw.Dump(ctx, key).Val(); after != before {
					t.Errorf("%s: overwritten", key)
				}
			}
		}
	})
}

func TestFenceThatIsNoCounterIsReported(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		for _, value := range []string{"mine", "9007199254740992"} {
			s.raw.Set(t.Context(), mutexKey+":fence", value, 0)
			_, err := store.Acquire(t.Context(), claim("a", 1))
			var failed *lockagent.StoreError
			if !errors.As(err, &failed) || failed.Code != lockagent.CodeWrongType {
				t.Errorf("got %v, want code %q", err, lockagent.CodeWrongType)
			}
			if got := keys(t, s.raw); len(got) != 1 || s.raw.Get(t.Context(), got[0]).Val() != value {
				t.Errorf("something was written: %q", got)
			}
		}
	})
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
