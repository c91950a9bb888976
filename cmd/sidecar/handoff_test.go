package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// revision are the variables of one pod of a Deployment, whose containers the
// kubelet has just started.
func revision(t *testing.T, redis *redistest.Server, pod, number string) map[string]string {
	t.Helper()
	vars := and(variables(t, redis.SocketURL()), "POD_UID", pod, "POD_NAME", pod, "POD_NAMESPACE", "orders",
		"HANDOFF", "rollout", "WORKLOAD", "deployment-uid", "REPLICASET", "rs-"+number, "REVISION", number)
	restartInPlace(t, vars)
	return vars
}

// restartInPlace is the kubelet starting all containers of the pod.
func restartInPlace(t *testing.T, vars map[string]string) {
	t.Helper()
	if code := launch(t, vars, "init").exit(); code != 0 {
		t.Fatalf("init ended with %d", code)
	}
}

// operator-sdk#920: the new pod waited for the lock of the old one, and the old one
// for the new one to be ready.
func TestCaseB01NewRevisionTakesTheLockOver(t *testing.T) {
	redis := redistest.Start(t)
	oldVars := revision(t, redis, "web-1", "1")
	old := start(t, oldVars)
	first := old.awaitHeld()
	third := start(t, variables(t, redis.SocketURL()))
	third.await("the third is first in line", func() bool { return third.ask("GET", "/v1/state").Position == 1 })
	newVars := revision(t, redis, "web-2", "2")
	newPod := start(t, newVars)

	if code := old.exit(); code != lockagent.ExitYielded {
		t.Errorf("exit code %d of the old one, want %d", code, lockagent.ExitYielded)
	}
	if got := old.file("held"); got != "" {
		t.Errorf("held is still there: %q", got)
	}
	if got := old.file("state.json"); !strings.Contains(got, `"state":"yielding","held":false`) {
		t.Errorf("state.json = %s, want it yielding", got)
	}
	beside := launch(t, oldVars) // the agent alone is restarted: its app may run
	if code := beside.exit(); code != lockagent.ExitYielded {
		t.Errorf("exit code %d beside an app that may run, want %d", code, lockagent.ExitYielded)
	}
	for _, p := range []*process{third, newPod} {
		if p.ask("GET", "/v1/held").code == 200 {
			t.Fatal("another holds while the old app may run")
		}
	}

	restartInPlace(t, oldVars)
	old = start(t, oldVars)
	second := newPod.awaitHeld()
	if second.Token <= first.Token {
		t.Errorf("token %d after %d, want a greater one", second.Token, first.Token)
	}
	if third.ask("GET", "/v1/held").code == 200 || old.ask("GET", "/v1/held").code == 200 {
		t.Error("two hold")
	}
	old.await("the old one is behind the third", func() bool { return old.ask("GET", "/v1/state").Position == 2 })
	if got := old.ask("GET", "/metrics").body; !strings.Contains(got, "holdfast_yields_total 1\n") {
		t.Errorf("metrics do not count the yield:\n%s", got)
	}
	launch(t, newVars, "prestop").exit() // the new one's app ends
	newPod.signal(syscall.SIGTERM)
	newPod.exit()
	third.awaitHeld()
}

// The new pod is gone before the old one's containers have started anew.
func TestHeirGoneMeanwhile(t *testing.T) {
	redis := redistest.Start(t)
	oldVars := revision(t, redis, "web-1", "1")
	old := start(t, oldVars)
	first := old.awaitHeld()
	newPod := start(t, revision(t, redis, "web-2", "2"))
	if code := old.exit(); code != lockagent.ExitYielded {
		t.Fatalf("exit code %d, want %d", code, lockagent.ExitYielded)
	}
	newPod.signal(syscall.SIGKILL)
	newPod.exit()
	restartInPlace(t, oldVars)
	if again := start(t, oldVars).awaitHeld(); again.Token != first.Token {
		t.Errorf("token %d, want %d: the hold has not ended", again.Token, first.Token)
	}
}
