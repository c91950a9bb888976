package redisstore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/storetest"
)

// A Redis user with the documented rights can do all that a Store does.
func TestDocumentedACLSuffices(t *testing.T) {
	s := startReal(t)
	var rule []any
	for _, word := range documentedACL(t) {
		rule = append(rule, word)
	}
	if err := s.raw.Do(t.Context(), rule...).Err(); err != nil {
		t.Fatal(err)
	}
	limited := s
	limited.url = strings.Replace(s.url, "redis://", "redis://holdfast:PASSWORD@", 1)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		if err := s.raw.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return limited.harness()
	})
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
