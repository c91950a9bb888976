package redisstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/storetest"
)

// A Redis user with the documented rights can do all that a Store does, and what
// publishes revisions.
func TestDocumentedACLSuffices(t *testing.T) {
	s := startReal(t)
	limited := s.limited(t)
	p, store := publisher(t, redisstore.Options{URL: limited.url}), limited.open(t, agentenv.Mutex, resource)
	publish(t, p, 3)
	if got := revisionOf(t, store, heir()); got != 3 {
		t.Errorf("revision %d, want 3", got)
	}
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		if err := s.raw.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return limited.harness()
	})
}

// Each of the documented rights is needed: without it something fails, and says
// that it is for want of a permission.
func TestDocumentedACLHasNothingToSpare(t *testing.T) {
	s := startReal(t)
	rules := documentedACL(t)
	for i, rule := range rules {
		if !strings.ContainsAny(rule[:1], "+~&") {
			continue
		}
		t.Run(rule, func(t *testing.T) {
			limited := s.as(t, append([]string{"reset"}, slices.Delete(slices.Clone(rules), i, i+1)...))
			s.raw.ScriptFlush(t.Context())
			if missed := missed(t, limited); !missed {
				t.Errorf("nobody misses %s", rule)
			}
		})
	}
}

// missed does what there is to do, and tells whether anything was refused.
func missed(t *testing.T, s server) bool {
	var errs []error
	for kind := range lockKeys {
		store, c := s.open(t, kind, resource), heir()
		_, listen := store.Listen(t.Context(), c)
		_, acquire := store.Acquire(t.Context(), c)
		_, renew := store.Renew(t.Context(), c)
		_, release := store.Release(t.Context(), c)
		_, revision := store.Revision(t.Context(), c)
		errs = append(errs, listen, acquire, renew, release, revision)
		if w := store.Warnings(); len(w) > 0 && w[0].Code == lockagent.CodeUnchecked {
			return true
		}
	}
	for _, err := range errs {
		if err != nil && codeOf(err) != lockagent.CodeNoPermission {
			t.Errorf("got %v, want code %q", err, lockagent.CodeNoPermission)
		}
	}
	return errors.Join(errs...) != nil
}

// limited is the server as the documented user sees it.
func (s server) limited(t *testing.T) server {
	t.Helper()
	return s.as(t, documentedACL(t))
}

// as is the server as a user with these rules sees it.
func (s server) as(t *testing.T, rules []string) server {
	t.Helper()
	command := []any{"ACL", "SETUSER", "holdfast"}
	for _, rule := range rules {
		command = append(command, rule)
	}
	if err := s.raw.Do(t.Context(), command...).Err(); err != nil {
		t.Fatal(err)
	}
	s.url = strings.Replace(s.url, "redis://", "redis://holdfast:PASSWORD@", 1)
	return s
}

// documentedACL is what docs/redis.md tells to give to the user.
func documentedACL(t *testing.T) []string {
	t.Helper()
	_, rest, found := strings.Cut(read(t, "../../../docs/redis.md"), "ACL SETUSER holdfast ")
	rules, _, whole := strings.Cut(rest, "\n```")
	if !found || !whole {
		t.Fatal("docs/redis.md has no block with ACL SETUSER holdfast")
	}
	return strings.Fields(rules)
}
