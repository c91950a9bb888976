package main

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(script string, out io.Writer) command {
	return command{argv: []string{"/bin/sh", "-c", script}, env: []string{"PATH=" + os.Getenv("PATH")}, output: out}
}

func TestProcessEndTakesItsChildrenAlong(t *testing.T) {
	ps := testProcesses(t)
	var out bytes.Buffer
	p, err := ps.start(shell("sleep 600 >/dev/null 2>&1 & echo $!; exit 3", &out))
	if err != nil {
		t.Fatal(err)
	}
	<-p.ended
	if p.exit != 3 {
		t.Errorf("exit code %d, want 3", p.exit)
	}
	child, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatalf("output %q: %v", out.String(), err)
	}
	if alive(child) {
		t.Errorf("the child %d of a process that has ended is still alive", child)
	}
}

func TestProcessStop(t *testing.T) {
	cases := map[string]struct {
		script   string
		wantExit int
	}{
		"heeds TERM":   {script: "trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done", wantExit: 5},
		"ignores TERM": {script: "trap '' TERM; echo ready; while :; do sleep 0.01; done", wantExit: -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ps := testProcesses(t)
			ready := make(chan struct{}) // else TERM could come before the trap is set
			c := shell(tc.script, &output{onLine: func(string) { close(ready) }})
			p, err := ps.start(c)
			if err != nil {
				t.Fatal(err)
			}
			<-ready
			p.stop(300 * time.Millisecond)
			if p.exit != tc.wantExit {
				t.Errorf("exit code %d, want %d", p.exit, tc.wantExit)
			}
		})
	}
}

func TestKillAllLeavesNothingAndStartsNothing(t *testing.T) {
	ps := testProcesses(t)
	first, err := ps.start(shell("sleep 600", nil))
	if err != nil {
		t.Fatal(err)
	}
	ps.killAll()
	<-first.ended
	if alive(first.group) {
		t.Error("a process survived killAll")
	}
	if _, err := ps.start(shell("true", nil)); err == nil {
		t.Error("a process was started after killAll")
	}
}

func testProcesses(t *testing.T) *processes {
	t.Helper()
	ps, err := newProcesses()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ps.killAll)
	return ps
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
