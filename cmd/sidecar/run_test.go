package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	if a := two.ask("GET", "/metrics"); !strings.Contains(a.body, "holdfast_adoptions_total 1\n") {
		t.Errorf("metrics do not count the adoption:\n%s", a.body)
	}
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

// The app's own clock is the agent's: when the agent as a whole stood still,
// what it says first on waking must be true by then.
func TestCaseB10FrozenAgentDoesNotWakeUpHolding(t *testing.T) {
	redis := redistest.Start(t)
	vars := and(variables(t, redis.SocketURL()), "TTL", "1s", "MARGIN", "200ms", "GATE", "none")
	p := start(t, vars)
	before := p.awaitHeld()
	p.signal(syscall.SIGSTOP)
	await(t, "Redis forgets the hold", func() bool { return redisDo(t, redis, "EXISTS "+lockKey) == ":0" })
	answers := make(chan answer)
	go func() { answers <- p.ask("GET", "/v1/held") }()
	p.signal(syscall.SIGCONT)
	if a := <-answers; a.code == 200 && a.Token == before.Token {
		t.Errorf("still says it holds with token %d, which Redis has forgotten", a.Token)
	}
}

func TestRedisFrozenWhileHolding(t *testing.T) {
	redis := redistest.Start(t)
	p := start(t, and(variables(t, redis.SocketURL()), "TTL", "3s", "MARGIN", "1s"))
	p.awaitHeld()
	if err := redis.Freeze(); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != lockagent.ExitLost {
		t.Errorf("exit code %d, want %d", code, lockagent.ExitLost)
	}
	if got := p.file("held"); got != "" {
		t.Errorf("held is still there after the loss: %q", got)
	}
	if got := p.file("state.json"); !strings.Contains(got, `"state":"lost"`) || !strings.Contains(got, `"lastLoss"`) {
		t.Errorf("state.json = %s, want it lost", got)
	}
}

// The end of a pod must not hang on a Redis that hangs. The bound of two seconds
// is proved in virtual time; here it is that nothing in the real program waits.
func TestTermWhileRedisIsFrozen(t *testing.T) {
	redis := redistest.Start(t)
	p := start(t, and(variables(t, redis.SocketURL()), "TTL", "60s", "MARGIN", "5s"))
	p.awaitHeld()
	if err := redis.Freeze(); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGTERM) // a second one changes nothing
	if code := p.exit(); code != lockagent.ExitLost {
		t.Errorf("exit code %d with a hold that could not be given back, want %d", code, lockagent.ExitLost)
	}
	var by time.Time
	for _, r := range p.records() {
		if s, ok := r["by"].(string); ok {
			by, _ = time.Parse(time.RFC3339, s)
		}
	}
	if by.IsZero() {
		t.Error("the log does not say by when the lock is free")
	}
}

func TestRedisComesLater(t *testing.T) {
	redis := redistest.Start(t)
	socket := filepath.Join(t.TempDir(), "redis.sock") // nothing is there yet
	p := start(t, variables(t, "unix://"+socket))
	st := p.awaitError(lockagent.CodeUnreachable)
	if !strings.Contains(st.Error.Message, socket) {
		t.Errorf("message %q, want it to name %s", st.Error.Message, socket)
	}
	if err := os.Symlink(redis.Socket, socket); err != nil {
		t.Fatal(err)
	}
	if st := p.awaitHeld(); st.Error != nil {
		t.Errorf("the error stays after it is over: %+v", st.Error)
	}
}

func TestWrongPasswordIsToldButNotShown(t *testing.T) {
	redis := redistest.Start(t, "requirepass right-secret")
	vars := variables(t, redis.SocketURL())
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("wrong-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	vars["HOLDFAST_REDIS_PASSWORD_FILE"] = file
	vars["HOLDFAST_LOG_LEVEL"] = "debug"
	p := start(t, vars)
	p.awaitError(lockagent.CodeWrongPassword)
	for what, text := range map[string]string{
		"log": p.output.String(), "state.json": p.file("state.json"),
		"/v1/state": p.ask("GET", "/v1/state").body, "/metrics": p.ask("GET", "/metrics").body,
	} {
		if strings.Contains(text, "wrong-secret") {
			t.Errorf("the %s shows the password:\n%s", what, text)
		}
		if !strings.Contains(text, "wrong_password") {
			t.Errorf("the %s does not say wrong_password:\n%s", what, text)
		}
	}

	// The Secret is put right, and nothing has to be restarted.
	if err := os.WriteFile(file, []byte("right-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.awaitHeld()
}

func TestKeysOfOthersAreLeftAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		command  string
		vars     []string
		wantCode lockagent.Code
		look     string
	}{
		"a list under the lock's name": {"LPUSH " + lockKey + " mine", nil, lockagent.CodeWrongType, "LRANGE " + lockKey + " 0 -1"},
		"a mutex, and we a semaphore":  {"SET " + lockKey + " mine PX 600000", []string{"KIND", "semaphore", "PERMITS", "2"}, lockagent.CodeOtherKind, "GET " + lockKey},
	} {
		t.Run(name, func(t *testing.T) {
			redis := redistest.Start(t)
			redisDo(t, redis, tc.command)
			before := redisDo(t, redis, tc.look)
			p := start(t, and(variables(t, redis.SocketURL()), tc.vars...))
			st := p.awaitError(tc.wantCode)
			if !strings.Contains(st.Error.Message, "orders/etl") {
				t.Errorf("message %q, want it to name the lock", st.Error.Message)
			}
			if diff := cmp.Diff(before, redisDo(t, redis, tc.look)); diff != "" || st.Held {
				t.Errorf("held = %v, and the key has changed (-before +after):\n%s", st.Held, diff)
			}
		})
	}
}

// Only a program that exists once per pod may say so: the ports are shared by
// all containers of the pod, and on hostNetwork by all of the node.
func TestCaseB50PortTakenEndsWithAdvice(t *testing.T) {
	redis := redistest.Start(t) // its port is one that is taken
	p := launch(t, and(variables(t, redis.SocketURL()), "LISTEN", redis.Addr))
	if code := p.exit(); code != lockagent.ExitConfig {
		t.Errorf("exit code %d, want %d", code, lockagent.ExitConfig)
	}
	for _, want := range []string{redis.Addr, "HOLDFAST_LISTEN", "holdfast.dev/agent-port"} {
		if !strings.Contains(p.output.String(), want) {
			t.Errorf("the log does not name %s", want)
		}
	}
}
