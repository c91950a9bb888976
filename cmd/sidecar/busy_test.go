package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// inPod are the variables of an agent in a pod, whose gate fails in its place.
func inPod(t *testing.T, redis *redistest.Server, more ...string) map[string]string {
	t.Helper()
	vars := and(variables(t, redis.SocketURL()), append(more, "POD_UID", "c0ffee")...)
	if code := launch(t, vars, "init").exit(); code != 0 {
		t.Fatalf("init ended with %d", code)
	}
	return vars
}

// wantBusy starts a gate, which has to fail and to say so, with no place in the queue left.
func wantBusy(t *testing.T, redis *redistest.Server, vars map[string]string, want lockagent.Code) {
	t.Helper()
	gate := launch(t, vars, "gate")
	if code := gate.exit(); code != lockagent.ExitBusy {
		t.Errorf("the gate ended with %d, want %d", code, lockagent.ExitBusy)
	}
	if got := gate.output.String(); !strings.Contains(got, "("+string(want)+": ") {
		t.Errorf("the gate said %q, want %s", got, want)
	}
	if got := redisDo(t, redis, "ZCARD "+lockKey+":queue"); got != ":0" {
		t.Errorf("%s in the queue when the gate had ended, want none", got)
	}
}

func TestGateOfABusyLock(t *testing.T) {
	redis := redistest.Start(t)
	holder := start(t, variables(t, redis.SocketURL()))
	first := holder.awaitHeld()

	vars := inPod(t, redis, "ON_BUSY", "fail")
	agent := start(t, vars)
	wantBusy(t, redis, vars, lockagent.CodeBusy)
	wantBusy(t, redis, vars, lockagent.CodeBusy) // the kubelet starts it again
	if got := agent.ask("GET", "/metrics").body; !strings.Contains(got, "holdfast_busy_total 2\n") {
		t.Errorf("metrics = %s, want two attempts that were busy", got)
	}

	holder.signal(syscall.SIGTERM)
	holder.exit()
	if got := redisDo(t, redis, "EXISTS "+lockKey); got != ":0" {
		t.Errorf("an agent that has given up was granted the lock: EXISTS is %s", got)
	}
	if code := launch(t, vars, "gate").exit(); code != lockagent.ExitOK {
		t.Errorf("the gate of a free lock ended with %d, want 0", code)
	}
	if st := agent.awaitHeld(); st.Token <= first.Token {
		t.Errorf("token %d after %d, want a greater one", st.Token, first.Token)
	}
}

func TestGateOfAWaitTimeout(t *testing.T) {
	redis := redistest.Start(t)
	holder := start(t, variables(t, redis.SocketURL()))
	holder.awaitHeld()

	vars := inPod(t, redis, "WAIT_TIMEOUT", "1s")
	agent := start(t, vars)
	wantBusy(t, redis, vars, lockagent.CodeWaitTimeout)

	// An agent that is killed has its verdict on record: its gate was told already.
	agent.signal(syscall.SIGKILL)
	agent.exit()
	agent = start(t, vars)
	if st := agent.ask("GET", "/v1/state").State; !st.GaveUp() {
		t.Errorf("state %+v after a restart of the agent alone, want what it was", st)
	}
	wantBusy(t, redis, vars, lockagent.CodeWaitTimeout)
	if got := agent.ask("GET", "/metrics").body; !strings.Contains(got, "holdfast_wait_timeouts_total 1\n") {
		t.Errorf("metrics = %s, want another attempt", got)
	}
}

// Redis that does not answer is not busy, and the gate says what it waits for.
func TestGateWhileRedisIsAway(t *testing.T) {
	redis := redistest.Start(t)
	if err := redis.Freeze(); err != nil {
		t.Fatal(err)
	}
	vars := inPod(t, redis, "ON_BUSY", "fail", "TTL", "3s", "MARGIN", "1s")
	start(t, vars)
	gate := launch(t, vars, "gate")
	gate.await("it says what is in the way", func() bool { return strings.Contains(gate.output.String(), "(timeout: ") })
	if err := redis.Thaw(); err != nil {
		t.Fatal(err)
	}
	if code := gate.exit(); code != lockagent.ExitOK {
		t.Errorf("the gate ended with %d once Redis was back, want 0", code)
	}
}
