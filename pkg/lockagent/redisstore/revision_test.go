package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
)

const revisionKey = "revision:{orders/6f1b}"

// heir is a claim of the ReplicaSet whose revision the tests publish.
func heir() lockagent.Claim {
	c := claim("a", 1)
	c.Namespace, c.ReplicaSet = "orders", "6f1b"
	return c
}

func publisher(t *testing.T, o redisstore.Options) *redisstore.Publisher {
	t.Helper()
	p, err := redisstore.OpenPublisher(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func revisionOf(t *testing.T, store *redisstore.Store, c lockagent.Claim) int64 {
	t.Helper()
	revision, err := store.Revision(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func publish(t *testing.T, p *redisstore.Publisher, revision int64) {
	t.Helper()
	if err := p.Publish(t.Context(), "orders", "6f1b", revision); err != nil {
		t.Fatal(err)
	}
}

func TestARevisionIsWhatWasPublishedLast(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store, p := s.open(t, agentenv.Mutex, resource), publisher(t, redisstore.Options{URL: s.url})
		if got := revisionOf(t, store, heir()); got != 0 {
			t.Errorf("revision %d before there is one, want 0", got)
		}
		for _, revision := range []int64{3, 5, 4} { // the API server decides, not the order
			publish(t, p, revision)
			if got := revisionOf(t, store, heir()); got != revision {
				t.Errorf("revision %d, want %d", got, revision)
			}
		}
		for name, other := range map[string]func(*lockagent.Claim){
			"another ReplicaSet": func(c *lockagent.Claim) { c.ReplicaSet = "77aa" },
			"another namespace":  func(c *lockagent.Claim) { c.Namespace = "billing" },
		} {
			c := heir()
			other(&c)
			if got := revisionOf(t, store, c); got != 0 {
				t.Errorf("%s has revision %d, want 0", name, got)
			}
		}
	})
}

func TestARevisionExpiresUnlessItIsPublishedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store, p := s.open(t, agentenv.Mutex, resource), publisher(t, redisstore.Options{URL: s.url})
		const most = redisstore.RevisionTTL
		publish(t, p, 3)
		s.advance(t, most-time.Minute)
		publish(t, p, 3)
		s.advance(t, most-time.Minute)
		if got := revisionOf(t, store, heir()); got != 3 {
			t.Errorf("revision %d after it was published again, want 3", got)
		}
		s.advance(t, time.Minute)
		if got := revisionOf(t, store, heir()); got != 0 {
			t.Errorf("revision %d after %s, want 0", got, most)
		}
	})
}

func TestARevisionThatIsNoneIsNotBelieved(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		for _, value := range []string{"0", "-1", "9007199254740993"} {
			if err := s.raw.Set(t.Context(), revisionKey, value, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
			if got := revisionOf(t, store, heir()); got != 0 {
				t.Errorf("%s is taken for revision %d", value, got)
			}
		}
	})
}

// What cannot be read or published says why, and whose it was.
func TestRevisionsThatFail(t *testing.T) {
	s := startReal(t)
	err := s.raw.Do(t.Context(), "ACL", "SETUSER", "locks", "on", ">"+secret, "~lock:*", "+@all").Err()
	if err != nil {
		t.Fatal(err)
	}
	limited := redisstore.Options{URL: strings.Replace(s.url, "redis://", "redis://locks:"+secret+"@", 1)}
	_, read := open(t, limited).Revision(t.Context(), heir())
	write := publisher(t, limited).Publish(t.Context(), "orders", "6f1b", 3)
	for op, tc := range map[string]struct {
		err  error
		want string
	}{
		"read":    {read, `read the revision for "orders/etl": the redis user may not do this`},
		"publish": {write, `publish the revision of "orders/6f1b": the redis user may not do this`},
	} {
		var failed *lockagent.StoreError
		if !errors.As(tc.err, &failed) || failed.Code != lockagent.CodeNoPermission {
			t.Errorf("%s: got %v, want code %s", op, tc.err, lockagent.CodeNoPermission)
			continue
		}
		if got := failed.Error(); !strings.HasPrefix(got, tc.want) || strings.Contains(got, secret) {
			t.Errorf("%s: got %q, want it to begin with %q", op, got, tc.want)
		}
	}
}
