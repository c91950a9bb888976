package redisstore_test

import (
	"net"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// replica starts one, and returns once it follows.
func replica(t *testing.T, of *redistest.Server) *redistest.Server {
	t.Helper()
	host, port, err := net.SplitHostPort(of.Addr)
	if err != nil {
		t.Fatal(err)
	}
	r := redistest.Start(t, "replicaof "+host+" "+port, "repl-diskless-sync-delay 0")
	r.Await(t, "master_link_status:up", "INFO", "replication")
	return r
}

func TestAHoldBeginsOnlyWhenReplicasHaveIt(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	second := replica(t, primary)
	const ttl = 6 * time.Second
	short := func(owner string, token int64) lockagent.Claim {
		return lockagent.Claim{Owner: owner, Permits: 1, TTL: ttl, Token: token}
	}
	store := open(t, redisstore.Options{URL: primary.URL(), TTL: ttl, Wait: 1})
	var token int64
	within(t, "a first hold, which a busy machine's replica may be late for", func() bool {
		a, err := store.Acquire(t.Context(), short("a", 0))
		token = a.Token
		return err == nil && a.Granted
	})
	if err := second.Freeze(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Thaw() }()

	if got := renew(t, store, short("a", token)); got.Outcome != lockagent.Held {
		t.Errorf("a hold that has begun is renewed with %q, want it kept without the replica", got.Outcome)
	}
	if _, err := store.Renew(t.Context(), short("a", 0)); codeOf(err) != lockagent.CodeNotReplicated {
		t.Errorf("a renewal that begins a hold: got %v, want code %q", err, lockagent.CodeNotReplicated)
	}
	release(t, store, short("a", token))
	if _, err := store.Acquire(t.Context(), short("b", 0)); codeOf(err) != lockagent.CodeNotReplicated {
		t.Errorf("acquire: got %v, want code %q", err, lockagent.CodeNotReplicated)
	}
	release(t, store, short("b", 0))

	if err := second.Thaw(); err != nil {
		t.Fatal(err)
	}
	within(t, "a hold that is replicated", func() bool {
		a, err := store.Acquire(t.Context(), short("c", 0))
		return err == nil && a.Granted
	})
}

func TestWaitingForReplicasWhileTheLockIsBusyTakesNoTime(t *testing.T) {
	primary := redistest.Start(t)
	store := open(t, redisstore.Options{URL: primary.URL()})
	take(t, store, claim("a", 1))
	waiter := open(t, redisstore.Options{URL: primary.URL(), Wait: 1})
	if got := acquire(t, waiter, claim("b", 1)); got.Position != 1 {
		t.Errorf("got %+v, want to wait first: there is nothing to replicate", got)
	}
}

// A replica may not have heard of a hold yet: what it does not know is not gone.
func TestAReplicaIsNotBelieved(t *testing.T) {
	failsWith(t, open(t, redisstore.Options{URL: replica(t, redistest.Start(t)).URL()}), lockagent.CodeNotWritable)
}

// A primary that has no replicas left takes no writes where that is so set.
func TestTooFewReplicasIsNotBusy(t *testing.T) {
	primary := redistest.Start(t, "min-replicas-to-write 1")
	store := open(t, redisstore.Options{URL: primary.URL()})
	_, err := store.Acquire(t.Context(), claim("a", 1))
	if codeOf(err) != lockagent.CodeNotWritable {
		t.Errorf("got %v, want code %q", err, lockagent.CodeNotWritable)
	}
}
