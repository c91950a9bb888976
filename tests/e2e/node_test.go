//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// The tests of this file disturb the whole node, so none runs beside another.

// A kubelet that is away and comes back finds the gate as it was: the app that
// holds runs on, the one that waits goes on waiting.
func TestAKubeletRestartChangesNothing(t *testing.T) {
	kubelet := nodeCommand(t, kubeletVariable)
	s := begin(t)
	holding := s.pod("first", mutex(lockName))
	s.awaitLives(startWithin, 1)
	waiting := s.pod("second", mutex(lockName))
	s.awaitWaiters(1)
	before := s.mustHold()
	agents := []process{s.agentOf(holding), s.agentOf(waiting)}

	kubelet("stop")
	t.Cleanup(func() { kubelet("restart") })
	pause(ttl20 / 2)
	kubelet("start")
	pause(ttl20 / 2)
	for _, agent := range agents {
		if agent.gone() {
			t.Errorf("an agent has ended")
		}
	}
	s.mustBeSame(before)
	if lives := s.lives(); len(lives) != 1 || boot()-lives[0].last > time.Second {
		t.Fatalf("the app did not run on, or another has started: %v", lives)
	}
	s.delete("first", -1)
	s.mustHandOver(0)
}

// When a node starts again, all apps on it have ended, and one of the two pods
// holds, as before.
func TestCaseB19ANodeThatStartsAgainHasOneHolder(t *testing.T) {
	reboot := nodeCommand(t, rebootVariable)
	s := begin(t)
	s.pod("first", mutex(lockName))
	s.awaitLives(startWithin, 1)
	s.pod("second", mutex(lockName))
	s.awaitWaiters(1)
	before := s.mustHold()

	reboot()
	after := s.awaitLives(startWithin+ttl20, 2)[1]
	h := s.mustHold()
	if after.token != h.tokenText() || h.token < before.token {
		t.Errorf("the app found token %s, Redis has %d and had %d", after.token, h.token, before.token)
	}
	t.Logf("%s went on %s after the other's end, adopted: %t", after.pod, after.start-s.lives()[0].last, h.token == before.token)
	s.eventually(startWithin, "the other one waits", func() bool { return s.waiters() == 1 })
	pause(ttl20 / 2)
	s.delete(after.pod, -1)
	s.mustHandOver(1)
}

// The variables of commands that disturb the node.
const (
	kubeletVariable = "HOLDFAST_E2E_KUBELET"
	rebootVariable  = "HOLDFAST_E2E_REBOOT"
)

// nodeCommand is a command of hack/e2e. Without it the test is skipped: not every
// cluster lets its kubelet be stopped. A kubelet that starts takes every pod for
// not ready until it has looked, so after all but a stop the webhook is awaited.
func nodeCommand(t *testing.T, variable string) func(args ...string) {
	t.Helper()
	command := strings.Fields(os.Getenv(variable))
	if len(command) == 0 {
		t.Skipf("no %s: see hack/e2e", variable)
	}
	return func(args ...string) {
		if out, err := exec.Command(command[0], append(command[1:], args...)...).CombinedOutput(); err != nil {
			t.Errorf("%s %v: %v: %s", variable, args, err, out)
		}
		if slices.Equal(args, []string{"stop"}) {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		if err := shared.untilInjecting(ctx); err != nil {
			t.Error(err)
		}
	}
}
