package main

import (
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

// A Secret need not have every key that the webhook points to.
func TestSecretWithTheURLOnly(t *testing.T) {
	redis := redistest.Start(t)
	vars := variables(t, "")
	secret := t.TempDir()
	if err := os.WriteFile(filepath.Join(secret, "url"), []byte(redis.SocketURL()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	delete(vars, "HOLDFAST_REDIS_URL")
	start(t, and(vars, "REDIS_URL_FILE", filepath.Join(secret, "url"), "REDIS_USERNAME_FILE", filepath.Join(secret, "username"),
		"REDIS_PASSWORD_FILE", filepath.Join(secret, "password"), "REDIS_CA_FILE", filepath.Join(secret, "ca.crt"))).awaitHeld()
}

// A URL that cannot be read is not printed: it may have a password in it.
func TestBadURLIsNotShown(t *testing.T) {
	for name, url := range map[string]string{
		"malformed":        "redis://:hush-hush@[::1",
		"unknown scheme":   "http://:hush-hush@redis.example",
		"a bad database":   "redis://:hush-hush@redis.example/one",
		"an unknown query": "redis://:hush-hush@redis.example?pool=9",
		"with a slash":     "redis://user:123/hush-hush@redis.example",
		"question mark":    "redis://user:123?hush-hush@redis.example",
		"port too large":   "redis://user:99999/hush-hush@redis.example",
		"socket's host":    "unix://hush-hush/@/run/redis.sock",
	} {
		t.Run(name, func(t *testing.T) {
			p := launch(t, variables(t, url))
			if code := p.exit(); code != lockagent.ExitConfig {
				t.Errorf("exit code %d, want %d", code, lockagent.ExitConfig)
			}
			if out := p.output.String(); strings.Contains(out, "hush-hush") || !strings.Contains(out, "HOLDFAST_REDIS_URL: the redis url") {
				t.Errorf("the log is to name the variable, and not to show its value:\n%s", out)
			}
		})
	}
}

// Nor where it does not belong.
func TestURLInTheWrongVariableIsNotShown(t *testing.T) {
	p := launch(t, and(variables(t, ""), "REDIS_URL_FILE", "redis://:hush-hush@redis.example"))
	if code := p.exit(); code != lockagent.ExitConfig {
		t.Errorf("exit code %d, want %d", code, lockagent.ExitConfig)
	}
	if out := p.output.String(); strings.Contains(out, "hush-hush") || !strings.Contains(out, "HOLDFAST_REDIS_URL_FILE: must name a file") {
		t.Errorf("the log is to name the variable, and not to show it:\n%s", out)
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
	for what, text := range map[string]func() string{
		"the log": p.output.String, "state.json": func() string { return p.file("state.json") },
		"/v1/state": func() string { return p.ask("GET", "/v1/state").body },
		"/metrics":  func() string { return p.ask("GET", "/metrics").body },
	} {
		p.await(what+" says wrong_password", func() bool { return strings.Contains(text(), "wrong_password") })
		if strings.Contains(text(), "wrong-secret") {
			t.Errorf("%s shows the password:\n%s", what, text())
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
