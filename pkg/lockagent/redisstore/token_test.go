package redisstore_test

import (
	"testing"
	"time"

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
