package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// otherHost is where the replicas and the Sentinels of these tests come from, so
// that the network can be cut between them and a primary that agents still reach.
const otherHost = "127.0.0.2"

// startSplit has a primary behind a proxy, by whose address everyone knows it.
func startSplit(t *testing.T, config ...string) (*redistest.Sentinels, *redistest.Proxy) {
	t.Helper()
	primary := redistest.Start(t, config...)
	proxy := redistest.NewProxy(t, primary.Addr)
	_, port, _ := strings.Cut(proxy.Addr, ":")
	primary.Do(t, "CONFIG", "SET", "replica-announce-port", port)
	return redistest.WatchedAt(t, primary, proxy.Addr, otherHost, config...), proxy
}

// A primary that is cut off from its replicas and from the Sentinels goes on
// serving those who reach it. Who asks the Sentinels before each renewal is not
// fooled by it.
func TestCutOffPrimaryIsLeft(t *testing.T) {
	t.Parallel()
	s, proxy := startSplit(t)
	holder := runAgent(t, redisstore.Options{URL: s.URL()})
	token := awaitState(t, holder, "the first hold", held).Token

	proxy.Cut(otherHost)
	var next *redistest.Server
	within(t, "an election", func() bool { next = promoted(s.Servers[1:]); return next != nil })
	elected := time.Now()
	if info := s.Servers[0].Do(t, "INFO", "replication"); !strings.Contains(info, "role:master") {
		t.Fatalf("the old primary knows of the new one: the test tests nothing: %s", info)
	}
	within(t, "a renewal on the new primary", func() bool { return renewedLately(next) })
	t.Logf("the holder had followed %s after the election", time.Since(elected).Round(time.Millisecond))
	if st := holder.Status().State(); !st.Held || st.Token != token {
		t.Errorf("the holder is %+v, want token %d held", st, token)
	}
}

// What a cut-off primary grants is lost with it. Only WAIT, or min-replicas-to-write
// once its lag is over, keep that from counting.
func TestWhatACutOffPrimaryGrants(t *testing.T) {
	t.Parallel()
	s, proxy := startSplit(t)
	o := redisstore.Options{URL: s.URL(), TTL: failOverTTL}
	trusting := open(t, o)
	o.Wait = 1
	careful := open(t, o)
	release(t, trusting, claim("a", 1)) // both are connected to the primary
	release(t, careful, claim("b", 1))

	proxy.Cut(otherHost)
	if _, err := careful.Acquire(t.Context(), claim("b", 1)); codeOf(err) != lockagent.CodeNotReplicated {
		t.Errorf("with WAIT: got %v, want code %q", err, lockagent.CodeNotReplicated)
	}
	release(t, careful, claim("b", 1))
	lost := claim("a", 1)
	lost.Token = take(t, trusting, lost)

	within(t, "an election", func() bool { return promoted(s.Servers[1:]) != nil })
	var next int64
	within(t, "a hold on the new primary", func() bool {
		a, err := careful.Acquire(t.Context(), claim("c", 1))
		next = a.Token
		return err == nil && a.Granted
	})
	if next <= lost.Token {
		t.Errorf("the new primary gives token %d after %d", next, lost.Token)
	}
	within(t, "the loss of what the old primary granted", func() bool {
		r, err := trusting.Renew(t.Context(), lost)
		return err == nil && r.Outcome != lockagent.Held
	})
}
