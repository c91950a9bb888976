package redisstore_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

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
		if got := acquire(t, store, claim("c", 1)); got.RetryAfter != 0 {
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

func TestExpiryOfASetThatOthersUseIsNeverBroughtForward(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		ctx, store := t.Context(), s.open(t, agentenv.Semaphore, resource)
		s.raw.ZAdd(ctx, semaphoreKey, redis.Z{Score: 1e15, Member: "foreigner"})
		s.raw.Expire(ctx, semaphoreKey, 3*time.Hour)
		take(t, store, claim("a", 2))
		renew(t, store, claim("a", 2))
		if left := s.raw.PTTL(ctx, semaphoreKey).Val(); left < 3*time.Hour-time.Minute {
			t.Errorf("the set expires in %s, want three hours as before", left)
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

// A permit of another program may be one for ever, or until a time that is
// further away than Redis can count. Miniredis writes such scores another way.
func TestSemaphoreWithAPermitThatEndsNoMore(t *testing.T) {
	for _, score := range []float64{math.Inf(1), 1e300, 1e19, 9e15} {
		t.Run(fmt.Sprint(score), func(t *testing.T) {
			s := startReal(t)
			ctx, store := t.Context(), s.open(t, agentenv.Semaphore, resource)
			s.raw.ZAdd(ctx, semaphoreKey, redis.Z{Score: score, Member: "foreigner"})
			take(t, store, claim("a", 2))
			if got := acquire(t, store, claim("b", 2)); got.Granted || got.RetryAfter <= 0 || got.RetryAfter > time.Second {
				t.Errorf("got %+v, want to wait and look once a second", got)
			}
			if got := renew(t, store, claim("a", 2)).Outcome; got != lockagent.Held {
				t.Errorf("the renewal gives %q", got)
			}
			if left := s.raw.PTTL(ctx, semaphoreKey).Val(); left < 29*24*time.Hour {
				t.Errorf("the set expires in %s, want about a month", left)
			}
			release(t, store, claim("a", 2))
			take(t, store, claim("b", 2))
		})
	}
}
