package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

func TestCommandsByName(t *testing.T) {
	for name, tc := range map[string]struct {
		args     []string
		wantCode int
		want     string
	}{
		"the version":         {[]string{"version"}, 0, "holdfast-agent v1.2.3-test (go1."},
		"as a flag":           {[]string{"--version"}, 0, "holdfast-agent v1.2.3-test (go1."},
		"help":                {[]string{"--help"}, 0, "usage: holdfast-agent [COMMAND]"},
		"an unknown one":      {[]string{"start"}, 2, `unknown command "start"`},
		"its usage lists all": {[]string{"start"}, 2, "check [--wait DURATION]"},
		"one too many words":  {[]string{"init", "now"}, 2, "holdfast-agent init takes no arguments"},
		"exec is for later":   {[]string{"exec", "--", "true"}, 2, "holdfast-agent exec is not supported yet"},
		"check without agent": {[]string{"check"}, 2, "no agent answers; is one running, with HOLDFAST_DIR="},
		"check with a word":   {[]string{"check", "now"}, 2, "check takes --wait DURATION"},
		"check with a flag":   {[]string{"check", "--force"}, 2, "flag provided but not defined"},
		"check for less":      {[]string{"check", "--wait", "-1s"}, 2, "not below zero"},
		"probe without agent": {[]string{"probe"}, 1, "HOLDFAST_PROBE_LISTEN: must be the path of a socket"},
		"probe for less":      {[]string{"probe", "--for", "-1s"}, 1, "durations above zero"},
		"probe without pause": {[]string{"probe", "--every", "0s"}, 1, "durations above zero"},
		"prestop without pod": {[]string{"prestop"}, 2, "mark terminating"},
	} {
		t.Run(name, func(t *testing.T) {
			none := filepath.Join(t.TempDir(), "none")
			p := launch(t, map[string]string{"HOLDFAST_DIR": none, "HOLDFAST_STATE_DIR": none}, tc.args...)
			if code := p.exit(); code != tc.wantCode {
				t.Errorf("exit code %d, want %d", code, tc.wantCode)
			}
			if !strings.Contains(p.output.String(), tc.want) {
				t.Errorf("output %q, want %q in it", p.output, tc.want)
			}
		})
	}
}

func TestInitRaisesTheEpoch(t *testing.T) {
	vars := map[string]string{"HOLDFAST_STATE_DIR": filepath.Join(t.TempDir(), "state")}
	for _, want := range []string{"epoch 1\n", "epoch 2\n"} {
		p := launch(t, vars, "init")
		if code := p.exit(); code != 0 || p.output.String() != want {
			t.Errorf("init ended with %d and %q, want 0 and %q", code, p.output, want)
		}
	}
}

func TestPrestopMarks(t *testing.T) {
	dir := t.TempDir()
	p := launch(t, map[string]string{"HOLDFAST_STATE_DIR": dir}, "prestop")
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if _, err := os.Stat(filepath.Join(dir, "terminating")); err != nil {
		t.Error(err)
	}
}

// The API answers within a minute; check may wait for longer.
func TestCheckAsksAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		heldAfter, wait, want time.Duration
	}{
		"held before the wait is over": {3*time.Minute + time.Second, 5 * time.Minute, 3*time.Minute + time.Second},
		"not held in time":             {time.Hour, 150 * time.Second, 150 * time.Second},
		"no wait":                      {time.Hour, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				api := func(wait time.Duration) (lockagent.State, error) {
					if wait > time.Minute {
						t.Errorf("asked to wait for %v, and the API takes a minute at most", wait)
					}
					time.Sleep(min(wait, max(0, tc.heldAfter-time.Since(begin))))
					return lockagent.State{Held: time.Since(begin) >= tc.heldAfter}, nil
				}
				st, err := ask(api, tc.wait)
				if err != nil {
					t.Fatal(err)
				}
				if got := time.Since(begin); got != tc.want || st.Held != (tc.heldAfter <= tc.wait) {
					t.Errorf("held = %v after %v, want %v", st.Held, got, tc.want)
				}
			})
		})
	}
}

func TestCheckAsksTheAgent(t *testing.T) {
	redis := redistest.Start(t)
	one := start(t, variables(t, redis.SocketURL()))
	one.awaitHeld()
	two := start(t, variables(t, redis.SocketURL()))
	two.await("it is in the queue", func() bool { return two.ask("GET", "/v1/state").Position == 1 })

	ask := func(of *process, args ...string) *process {
		return launch(t, map[string]string{"HOLDFAST_DIR": of.dir}, append([]string{"check"}, args...)...)
	}
	answer := func(p *process, wantCode int, want string) {
		t.Helper()
		if code := p.exit(); code != wantCode || !strings.HasPrefix(p.output.String(), want) || strings.Count(p.output.String(), "\n") != 1 {
			t.Errorf("check ended with %d and %q, want %d and one line %q", code, p.output, wantCode, want)
		}
	}
	answer(ask(one), 0, `mutex "orders/etl": holding, token `)
	answer(ask(two), 1, `mutex "orders/etl": waiting, position 1 of 1`)
	answer(ask(two, "--wait", "10ms"), 1, `mutex "orders/etl": waiting`)
	long := ask(two, "--wait", "5m")
	one.signal(syscall.SIGTERM)
	answer(long, 0, `mutex "orders/etl": holding, token `)
}
