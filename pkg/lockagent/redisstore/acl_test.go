package redisstore_test

import (
	"os"
	"strings"
	"testing"

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

// limited is the server as that user sees it.
func (s server) limited(t *testing.T) server {
	t.Helper()
	var rule []any
	for _, word := range documentedACL(t) {
		rule = append(rule, word)
	}
	if err := s.raw.Do(t.Context(), rule...).Err(); err != nil {
		t.Fatal(err)
	}
	s.url = strings.Replace(s.url, "redis://", "redis://holdfast:PASSWORD@", 1)
	return s
}

// documentedACL is the command that the installation tells to give to Redis.
func documentedACL(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../config/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "ACL SETUSER holdfast ")
	command, _, whole := strings.Cut(rest, "\n```")
	if !found || !whole {
		t.Fatal("config/README.md has no block with ACL SETUSER holdfast")
	}
	return append([]string{"ACL", "SETUSER", "holdfast"}, strings.Fields(command)...)
}
