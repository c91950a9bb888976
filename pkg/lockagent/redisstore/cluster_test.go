package redisstore_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// While a slot moves to another node, its locks answer nobody; a hold that lives on
// goes on there, with its waiters.
func TestResharding(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	i := c.Owner(t, mutexKey)
	from, to := c.Primaries[i], c.Primaries[(i+1)%3]
	slot, fromID, toID := from.Do(t, "CLUSTER", "KEYSLOT", mutexKey), from.Do(t, "CLUSTER", "MYID"), to.Do(t, "CLUSTER", "MYID")
	// Nodes that do not have the lock come first, and one that is not there.
	store := open(t, redisstore.Options{URL: "redis+cluster://127.0.0.1:1," + to.Addr + "," + from.Addr})
	token := take(t, store, claim("a", 1))
	wakes := listen(t, store, claim("b", 1))
	acquire(t, store, claim("b", 1))

	to.Do(t, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	from.Do(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	moving := func(when string) {
		t.Helper()
		if _, err := store.Renew(t.Context(), claim("a", 1)); codeOf(err) != lockagent.CodeNotWritable {
			t.Errorf("%s: got %v, want code %q", when, err, lockagent.CodeNotWritable)
		}
	}
	moving("before its keys have moved")
	host, port, _ := strings.Cut(to.Addr, ":")
	from.Do(t, append([]string{"MIGRATE", host, port, `""`, "0", "5000", "KEYS"}, store.Keys()...)...)
	moving("after its keys have moved")
	for _, p := range c.Primaries {
		p.Do(t, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	}

	if got := renew(t, store, claim("a", 1)); got.Outcome != lockagent.Held || got.Token != token {
		t.Errorf("on the new node the renewal gives %+v, want token %d held", got, token)
	}
	wakesWith(t, wakes, lockagent.WakeRetry)
	release(t, store, claim("a", 1))
	wakesWith(t, wakes, lockagent.WakeOffer)
}

// The revisions of ReplicaSets have slots of their own.
func TestRevisionsOnACluster(t *testing.T) {
	t.Parallel()
	s := startCluster(t)
	store, p := s.open(t, "mutex", resource), publisher(t, redisstore.Options{URL: s.url})
	take(t, store, claim("a", 1))
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} { // on all nodes, most likely
		c := heir()
		c.ReplicaSet = id
		if err := p.Publish(t.Context(), c.Namespace, id, 7); err != nil {
			t.Fatal(err)
		}
		if got := revisionOf(t, store, c); got != 7 {
			t.Errorf("revision %d of %s, want 7", got, id)
		}
	}
	if got := renew(t, store, claim("a", 1)).Outcome; got != lockagent.Held {
		t.Errorf("the renewal gives %q", got)
	}
}

func TestAClusterIsToldFromOneServer(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	i := c.Owner(t, mutexKey)
	store := open(t, redisstore.Options{URL: c.Primaries[(i+1)%3].URL()})
	_, err := store.Acquire(t.Context(), claim("a", 1))
	if err == nil || !strings.Contains(err.Error(), "redis+cluster://") {
		t.Errorf("got %v, want it to say which address is right", err)
	}
}
