package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// withProbes are variables of an agent in a pod whose probes are exec.
func withProbes(t *testing.T, redis *redistest.Server) map[string]string {
	t.Helper()
	vars := and(variables(t, redis.SocketURL()), "POD_UID", "c0ffee")
	vars["HOLDFAST_PROBE_LISTEN"] = filepath.Join(vars["HOLDFAST_STATE_DIR"], "probe.sock")
	if code := launch(t, vars, "init").exit(); code != 0 {
		t.Fatalf("init ended with %d", code)
	}
	return vars
}

func TestExecProbeTellsTheKubelet(t *testing.T) {
	redis := redistest.Start(t)
	vars := withProbes(t, redis)
	startup := []string{"probe"}
	liveness := []string{"probe", "--for", "300ms", "--every", "100ms"}
	answer := func(args []string, wantCode int, want string) {
		t.Helper()
		p := launch(t, vars, args...)
		if code := p.exit(); code != wantCode || !strings.HasPrefix(p.output.String(), want) {
			t.Errorf("%v ended with %d and %q, want %d and %q", args, code, p.output, wantCode, want)
		}
	}
	answer(startup, 1, "holdfast-agent probe: no agent answers: ")
	agent := start(t, vars)
	answer(startup, 0, "")
	answer(liveness, 0, "")
	agent.signal(syscall.SIGSTOP)
	answer(startup, 1, "holdfast-agent probe: no answer: ")
	answer(liveness, 1, "holdfast-agent probe: no answer: ")
	agent.signal(syscall.SIGCONT)
	agent.await("the agent has come to itself", func() bool { return agent.ask("GET", "/livez").code == 200 })
	answer(liveness, 0, "")
}

// A probe that is under way ends well with an agent that ends.
func TestExecProbeEndsWithTheAgent(t *testing.T) {
	redis := redistest.Start(t)
	vars := withProbes(t, redis)
	agent := start(t, vars)
	probe := launch(t, vars, "probe", "--for", "1h", "--every", "10ms")
	agent.await("the probe asks", func() bool { return hasSocket(probe) })
	agent.signal(syscall.SIGTERM)
	agent.exit()
	if code := probe.exit(); code != 0 {
		t.Errorf("the probe ended with %d, want 0", code)
	}
}

// When the kubelet has killed a probe of which the agent believes that all is well,
// TERM may be for that, and the app may run on (consul#1210).
func TestCaseB08ExecProbeThatWasKilled(t *testing.T) {
	for name, tc := range map[string]struct {
		kill     bool
		wantSoon bool
	}{
		"it goes on":    {false, true},
		"it was killed": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			redis := redistest.Start(t)
			vars := withProbes(t, redis)
			agent := start(t, vars)
			agent.awaitHeld()
			probe := launch(t, vars, "probe", "--for", "1h", "--every", "10ms")
			agent.await("the probe asks", func() bool { return hasSocket(probe) })
			if tc.kill {
				probe.signal(syscall.SIGKILL)
				probe.exit()
			}
			if code := launch(t, vars, "prestop").exit(); code != 0 {
				t.Fatalf("prestop ended with %d", code)
			}
			agent.signal(syscall.SIGTERM)
			agent.exit()
			if got := freesSoon(t, redis); got != tc.wantSoon {
				t.Errorf("the lock is free soon = %t, want %t", got, tc.wantSoon)
			}
		})
	}
}

// hasSocket tells whether a process has opened one.
func hasSocket(p *process) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid))
	return slices.ContainsFunc(files, func(file string) bool {
		target, _ := os.Readlink(file)
		return strings.HasPrefix(target, "socket:")
	})
}
