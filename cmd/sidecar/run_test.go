package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

const lockKey = "lock:{orders/etl}"

func TestRunHoldsAndTells(t *testing.T) {
	redis := redistest.Start(t)
	p := start(t, variables(t, redis.SocketURL()))
	st := p.awaitHeld()
	if st.Token == 0 || st.State != lockagent.Holding || st.Resource != "orders/etl" || st.ExpiresAt == nil {
		t.Errorf("state = %+v, want a hold with token and end", st)
	}
	p.await("the file held has the token", func() bool { return p.file("held") == fmt.Sprintf("%d\n", st.Token) })
	if got := p.file("state.json"); !strings.Contains(got, fmt.Sprintf(`"token":%d`, st.Token)) {
		t.Errorf("state.json = %s, want the token", got)
	}
	first := p.records()[0]
	for key, want := range map[string]any{"version": "v1.2.3-test", "kind": "mutex", "resource": "orders/etl", "ttl": "30s", "margin": "6s"} {
		if first[key] != want {
			t.Errorf("first log line has %s=%v, want %v", key, first[key], want)
		}
	}

	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != lockagent.ExitOK {
		t.Errorf("exit code %d outside a pod, with the lock given back; want 0", code)
	}
	if got := redisDo(t, redis, "EXISTS "+lockKey); got != ":0" {
		t.Errorf("the lock is still there after the end: %s", got)
	}
	if got := p.file("held"); got != "" {
		t.Errorf("held is still there after the end: %q", got)
	}
}

func TestReleaseGivesTheLockToTheNext(t *testing.T) {
	redis := redistest.Start(t)
	one := start(t, variables(t, redis.SocketURL()))
	one.awaitHeld()
	two := start(t, variables(t, redis.SocketURL()))
	if a := two.ask("POST", "/v1/release"); a.code != 409 {
		t.Errorf("a waiter's release = %d %s, want 409", a.code, a.body)
	}
	if a := one.ask("POST", "/v1/release"); a.code != 200 || a.State.State != lockagent.Released {
		t.Errorf("the holder's release = %d %s, want 200 released", a.code, a.body)
	}
	two.awaitHeld()
	if a := one.ask("GET", "/v1/held"); a.code != 503 {
		t.Errorf("/v1/held of the one that released = %d, want 503", a.code)
	}
	if a := one.ask("POST", "/v1/release"); a.code != 409 {
		t.Errorf("a second release = %d, want 409", a.code)
	}
}

// TERM gives the lock back at once, and not only when the TTL is over
// (k8s-await-election#25).
func TestCaseB05TermGivesTheLockToTheNext(t *testing.T) {
	redis := redistest.Start(t)
	one := start(t, variables(t, redis.SocketURL()))
	first := one.awaitHeld()
	two := start(t, variables(t, redis.SocketURL()))
	two.await("the second is in the queue", func() bool { return two.ask("GET", "/v1/state").Position == 1 })
	if a := two.ask("GET", "/v1/held"); a.code != 503 || two.file("held") != "" {
		t.Fatalf("two holders: %s", a.body)
	}
	one.signal(syscall.SIGTERM)
	second := two.awaitHeld() // its wait is as long as the TTL, so only a release can end it
	if second.Token <= first.Token {
		t.Errorf("token %d after %d, want a greater one", second.Token, first.Token)
	}
	one.exit()
}

// A crash loses nothing: the next process of the same agent goes on with the
// hold, under the same token.
func TestKilledAgentIsFollowedByOneThatAdopts(t *testing.T) {
	redis := redistest.Start(t)
	vars := variables(t, redis.SocketURL())
	one := start(t, vars)
	first := one.awaitHeld()
	one.signal(syscall.SIGKILL)
	one.exit()

	two := start(t, vars)
	if got := two.awaitHeld(); got.Token != first.Token {
		t.Errorf("token %d after a crash, want the same, %d", got.Token, first.Token)
	}
	two.await("metrics count the adoption", func() bool {
		return strings.Contains(two.ask("GET", "/metrics").body, "holdfast_adoptions_total 1\n")
	})
}

// In a pod TERM alone does not say that the app has ended, unless the preStop
// hook ran before it (consul#1210, kubernetes PR#139991).
func TestCaseB09TermInAPod(t *testing.T) {
	for name, tc := range map[string]struct {
		hook     bool
		wantSoon bool
	}{
		"after the hook the app has ended": {true, true},
		"without it the app may run on":    {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			redis := redistest.Start(t)
			vars := and(variables(t, redis.SocketURL()), "POD_UID", "c0ffee")
			if code := launch(t, vars, "init").exit(); code != 0 {
				t.Fatalf("init ended with %d", code)
			}
			p := start(t, vars)
			p.awaitHeld()
			if tc.hook {
				if code := launch(t, vars, "prestop").exit(); code != 0 {
					t.Fatalf("prestop ended with %d", code)
				}
			}
			p.signal(syscall.SIGTERM)
			if code := p.exit(); code != lockagent.ExitLost {
				t.Errorf("exit code %d, want %d: never zero with a hold in a pod", code, lockagent.ExitLost)
			}
			if got := freesSoon(t, redis); got != tc.wantSoon {
				t.Errorf("the lock is free soon = %t, want %t", got, tc.wantSoon)
			}
		})
	}
}

// freesSoon tells whether the lock is free, or will be in the time for which a
// busy machine leaves it, on which an app may end a little after its agent.
func freesSoon(t *testing.T, redis *redistest.Server) bool {
	t.Helper()
	answer := redisDo(t, redis, "PTTL "+lockKey)
	left, err := strconv.Atoi(strings.TrimPrefix(answer, ":"))
	if err != nil {
		t.Fatalf("PTTL of the lock is %q", answer)
	}
	return left <= 2500
}

func TestTruncatedRecord(t *testing.T) {
	redis := redistest.Start(t)
	vars := variables(t, redis.SocketURL())
	vars["HOLDFAST_TTL"], vars["HOLDFAST_MARGIN"] = "2s", "500ms"
	one := start(t, vars)
	first := one.awaitHeld()
	one.signal(syscall.SIGKILL)
	one.exit()
	record := filepath.Join(vars["HOLDFAST_STATE_DIR"], "record.json")
	if err := os.Truncate(record, 20); err != nil {
		t.Fatal(err)
	}

	two := start(t, vars)
	second := two.awaitHeld() // once the hold that nobody knows of has ended by itself
	if second.Token <= first.Token {
		t.Errorf("token %d after %d, want a greater one", second.Token, first.Token)
	}
	if !strings.Contains(two.output.String(), record) {
		t.Errorf("the log does not name %s", record)
	}
}

func TestStateFolderNotWritable(t *testing.T) {
	redis := redistest.Start(t)
	vars := variables(t, redis.SocketURL())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	vars["HOLDFAST_STATE_DIR"] = filepath.Join(file, "state") // not even root can write below a file
	p := start(t, vars)
	st := p.awaitError(lockagent.CodeStateDir)
	if !strings.Contains(st.Error.Message, file) {
		t.Errorf("message %q, want it to name %s", st.Error.Message, file)
	}
	if got := redisDo(t, redis, "EXISTS "+lockKey); got != ":0" {
		t.Errorf("a lock was taken that no later process could know of")
	}
}
