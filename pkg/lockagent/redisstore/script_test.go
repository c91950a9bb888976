package redisstore

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// PEXPIRE with zero deletes the key and answers as if all were well. The Store
// lets no such time through; the scripts do not rely on it.
func TestScriptsRefuseATimeThatWouldDeleteTheHold(t *testing.T) {
	m := miniredis.RunT(t)
	s, err := Open(Options{URL: "redis://" + m.Addr(), Kind: agentenv.Mutex, Resource: "orders/etl"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	c := lockagent.Claim{Owner: "a", Permits: 1, TTL: time.Minute}
	if a, err := s.Acquire(t.Context(), c); err != nil || !a.Granted {
		t.Fatalf("got %+v, %v", a, err)
	}
	for _, ttl := range []any{0, -1, "", "0.9", 30 * 60 * 1000, "nan"} {
		_, renew := renewScript.run(t.Context(), s.link.client, s.keys, "a", ttl, 0)
		_, shorten := shortenScript.run(t.Context(), s.link.client, s.keys, "a", ttl, 0)
		_, acquire := acquireScript.run(t.Context(), s.link.client, s.keys, "a", ttl, "", 1, 0)
		if renew == nil || shorten == nil || acquire == nil {
			t.Errorf("%v ms: renew gives %v, shorten %v, acquire %v, want errors", ttl, renew, shorten, acquire)
		}
	}
	if left := m.TTL(s.keys[0]); left != time.Minute {
		t.Errorf("the hold has %s left, want the minute that it had", left)
	}
}
