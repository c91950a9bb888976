package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

func TestFenceFollowsTheHighestToken(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		ctx, store := t.Context(), s.open(t, agentenv.Mutex, resource)
		ahead := s.raw.Time(ctx).Val().Add(time.Hour).UnixMicro()
		s.raw.Set(ctx, mutexKey+":fence", ahead, time.Hour)
		first := take(t, store, claim("a", 1))
		if first != ahead+1 {
			t.Errorf("token %d although the last one was %d", first, ahead)
		}
		held := claim("a", 1)
		held.Token = first
		// The counter is lost, as in a fail-over: a renewal puts it back.
		for name, lose := range map[string]func() error{
			"deleted":   func() error { return s.raw.Del(ctx, mutexKey+":fence").Err() },
			"went back": func() error { return s.raw.Set(ctx, mutexKey+":fence", 5, time.Hour).Err() },
		} {
			if err := lose(); err != nil {
				t.Fatal(err)
			}
			if got := renew(t, store, held).Token; got != first {
				t.Errorf("%s: renewed with token %d, want %d", name, got, first)
			}
			wantGrant(t, s, agentenv.Mutex, grant{"a", first, ""})
		}
		release(t, store, claim("a", 1))
		if got := take(t, store, claim("b", 1)); got != first+1 {
			t.Errorf("token %d, want %d", got, first+1)
		}
	})
}

// What a renewal claims to be its token counts only where Redis has lost its own
// record, and only if it can be true.
func TestTokenThatARenewalBrings(t *testing.T) {
	tests := map[string]struct {
		lose  bool
		known func(own int64) int64
		keeps bool
	}{
		"known, nothing lost":               {known: func(own int64) int64 { return own }, keeps: true},
		"another one, nothing lost":         {known: func(own int64) int64 { return own + 7 }, keeps: true},
		"known, the record is lost":         {lose: true, known: func(own int64) int64 { return own }, keeps: true},
		"unknown, the record is lost":       {lose: true, known: func(int64) int64 { return 0 }},
		"no number, the record is lost":     {lose: true, known: func(int64) int64 { return 1 << 53 }},
		"below nothing, the record is lost": {lose: true, known: func(own int64) int64 { return -own }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s server) {
				for kind := range lockKeys {
					own, got := renewsWith(t, s, kind, tc.lose, tc.known)
					if (got == own) != tc.keeps || got < own || got >= 1<<53-1 {
						t.Errorf("%s: renewed with token %d, had %d", kind, got, own)
					}
				}
			})
		})
	}
}

// renewsWith takes a hold, lets Redis lose its record or not, and renews with the
// token that known makes of its own. The renewal's token is the hold's from then.
func renewsWith(t *testing.T, s server, kind agentenv.Kind, lose bool, known func(int64) int64) (own, got int64) {
	t.Helper()
	store, held := s.open(t, kind, resource), claim("a", 1)
	own = take(t, store, held)
	if lose {
		s.raw.Del(t.Context(), lockKeys[kind]+":fence", lockKeys[kind]+":holders")
		s.advance(t, time.Millisecond)
	}
	held.Token = known(own)
	got = renew(t, store, held).Token
	wantGrant(t, s, kind, grant{"a", got, ""})
	if again := renew(t, store, claim("a", 1)).Token; again != got {
		t.Errorf("%s: renewed again with token %d, want %d", kind, again, got)
	}
	release(t, store, held)
	return own, got
}

func TestMutexWithAGrantAfterItsOwnGetsANewToken(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		held := claim("a", 1)
		held.Token = take(t, store, held)
		later := held.Token + time.Hour.Microseconds()
		s.raw.Set(t.Context(), mutexKey+":fence", itoa(later)+" x pod=x", 30*24*time.Hour)
		if got := renew(t, store, held).Token; got != later+1 {
			t.Errorf("renewed with token %d though the last one was %d", got, later)
		}
	})
}

// A semaphore's fence that has fallen behind is raised, one that is ahead stays.
func TestSemaphoreRaisesTheFenceOnly(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		ctx, store := t.Context(), s.open(t, agentenv.Semaphore, resource)
		first := take(t, store, claim("a", 2))
		second := take(t, store, claim("b", 2))
		s.raw.Set(ctx, semaphoreKey+":fence", 5, time.Hour)
		renew(t, store, claim("b", 2))
		held := claim("a", 2)
		held.Token = first
		s.raw.HDel(ctx, semaphoreKey+":holders", "a")
		if got := renew(t, store, held).Token; got != first {
			t.Errorf("renewed with token %d, want %d", got, first)
		}
		if got := s.raw.Get(ctx, semaphoreKey+":fence").Val(); got != itoa(second) {
			t.Errorf("the fence is %s, want the greatest token %d", got, second)
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
		wantGrant(t, s, agentenv.Mutex, grant{"a", token, ""}) // no digit may get lost
	})
}

func TestCaseB21TheServersClockAloneDecides(t *testing.T) {
	s := startMini(t) // years from this machine's time, and standing still
	now := s.raw.Time(t.Context()).Val()
	store := s.open(t, agentenv.Semaphore, resource)
	if token := take(t, store, claim("a", 1)); token != now.UnixMicro() {
		t.Errorf("token %d, want %d", token, now.UnixMicro())
	}
	expiry := int64(s.raw.ZScore(t.Context(), semaphoreKey, "a").Val())
	if want := now.Add(ttl).UnixMilli(); expiry != want {
		t.Errorf("the permit ends at %d, want %d", expiry, want)
	}
}

// A fence that is a plain number, a holder that is not in it, and waiters of whom
// nothing can be read: what another program, or an agent of another time, has left
// neither lowers a token nor keeps anybody waiting.
func TestFenceThatNamesNobody(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for kind, lock := range lockKeys {
			ctx, store := t.Context(), s.open(t, kind, resource)
			now := s.raw.Time(ctx).Val()
			last := now.Add(time.Hour).UnixMicro()
			s.raw.Set(ctx, lock+":fence", last, time.Hour)
			s.raw.HSet(ctx, lock+":waiters", "old", "x", "old:ttl", "30000")
			for key, score := range map[string]int64{":queue": now.UnixMilli(), ":heartbeats": now.Add(time.Hour).UnixMilli()} {
				s.raw.ZAdd(ctx, lock+key, redis.Z{Score: float64(score), Member: "old"})
			}
			if kind == agentenv.Mutex {
				s.raw.Set(ctx, lock, "holder", ttl)
			} else {
				s.raw.ZAdd(ctx, lock, redis.Z{Score: float64(now.Add(ttl).UnixMilli()), Member: "holder"})
				s.raw.HSet(ctx, lock+":holders", "holder", "x", "holder:token", last)
			}
			listen(t, store, claim("b", 1))
			if got := acquire(t, store, claim("b", 1)); got.Granted {
				t.Fatalf("%s: granted beside a holder", kind)
			}
			held := claim("holder", 1)
			held.Token = last // it goes on with its hold
			if got := renew(t, store, held); got.Outcome != lockagent.Held || got.Token != last {
				t.Errorf("%s: renewed with %+v, want token %d", kind, got, last)
			}
			release(t, store, held)
			if got := renew(t, store, claim("b", 1)); got.Outcome != lockagent.Held || got.Token <= last {
				t.Errorf("%s: %+v, want the offer with a token above %d", kind, got, last)
			}
			everyKeyExpires(t, s)
			s.raw.FlushAll(ctx)
		}
	})
}
