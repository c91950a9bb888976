package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// Each variable about Redis reaches the store: a server that asks for everything
// gets it from files, and the agent tells what it has seen there.
func TestAgentWithAllThatARedisCanAskFor(t *testing.T) {
	ca := redistest.NewAuthority(t)
	cert, key := ca.Issue(t, "agent.test")
	redis := redistest.Start(t, append(ca.ServerConfig(t), "tls-auth-clients yes", "maxmemory 100mb", "maxmemory-policy volatile-lru",
		"user default off", "user agent on >from-a-file ~* &* +@all")...)
	vars := variables(t, "rediss://"+redis.Addr+"?server-name=redis.test")
	file := func(name, content string) string {
		name = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	vars = and(vars, "REDIS_USERNAME_FILE", file("username", "agent"), "REDIS_PASSWORD_FILE", file("password", "from-a-file"),
		"REDIS_CA_FILE", ca.CAFile, "REDIS_CERT_FILE", cert, "REDIS_KEY_FILE", key)

	p := start(t, vars)
	if st := p.awaitError(lockagent.CodeUnfit); !strings.Contains(st.Error.Message, "HOLDFAST_REDIS_ALLOW_EVICTION") {
		t.Errorf("message %q, want it to say how to go on", st.Error.Message)
	}
	p = start(t, and(vars, "REDIS_ALLOW_EVICTION", "true", "STATE_DIR", t.TempDir(), "DIR", t.TempDir()))
	if st := p.awaitHeld(); len(st.Warnings) != 1 || st.Warnings[0].Code != lockagent.CodeEviction {
		t.Errorf("warnings %+v, want one of evictions", st.Warnings)
	}
	if got := p.file("state.json"); !strings.Contains(got, `"warnings":[{"code":"eviction"`) {
		t.Errorf("state.json = %s, want the warning in it", got)
	}
}

// Without a replica there is nothing to wait for, and so no hold.
func TestAgentThatWaitsForReplicas(t *testing.T) {
	redis := redistest.Start(t)
	p := start(t, and(variables(t, redis.SocketURL()), "TTL", "6s", "MARGIN", "1s", "REDIS_WAIT", "1"))
	p.awaitError(lockagent.CodeNotReplicated)
}
