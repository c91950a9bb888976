//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// inLine lets one pod hold and two wait, the second before the third.
func (s *trial) inLine(changes ...func(*corev1.PodSpec)) (second *corev1.Pod) {
	s.t.Helper()
	s.pod("first", mutex(lockName, "ttl", "30s"))
	s.awaitLives(startWithin, 1)
	second = s.pod("second", mutex(lockName, "ttl", "30s"), changes...)
	s.awaitWaiters(1)
	s.eventually(startWithin, "its gate waits", func() bool {
		return status(s.get("second"), gateName).State.Running != nil
	})
	s.pod("third", mutex(lockName, "ttl", "30s"))
	s.awaitWaiters(2)
	return second
}

// mustBeNext ends the first pod, and checks that the second had kept its place.
func (s *trial) mustBeNext() {
	s.t.Helper()
	s.awaitWaiters(2)
	s.delete("first", -1)
	if _, after := s.mustHandOver(0); after.pod != "second" {
		s.t.Errorf("%s was next, want second", after.pod)
	}
}

// stall lets an agent run on, all but its loop: that stands still when it next
// tells the app its state, until go on is called.
func (s *trial) stall(agent process) (goOn func()) {
	s.t.Helper()
	pipe := fmt.Sprintf("/proc/%d/root/var/run/holdfast/.state.json.part", agent)                // nobody reads from it
	if err := errors.Join(syscall.Mkfifo(pipe, 0o666), syscall.Chmod(pipe, 0o666)); err != nil { // also for the agent's user
		s.t.Fatal(err)
	}
	folder, err := syscall.Open(fmt.Sprintf("/proc/%d/root/var/run/holdfast", agent), syscall.O_DIRECTORY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = syscall.Close(folder) })
	return func() {
		if err := syscall.Unlinkat(folder, ".state.json.part"); err != nil {
			s.t.Error(err)
		}
	}
}

// A waiting agent whose loop stands still is ended, and its pod has its turn as
// if nothing had been.
func TestCaseB12AStalledWaiterIsEndedAndKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := begin(t)
	second := s.inLine()
	agent := s.agentOf(second)
	goOn := s.stall(agent)
	s.eventually(startWithin, "the stalled agent is ended", agent.gone)
	goOn()
	s.awaitNextAgent(second, agent)
	s.mustBeNext()
}

// Where no kubelet looks, the agent's own watchdog ends it.
func TestCaseB12AStalledWaiterEndsItselfWithoutAKubelet(t *testing.T) {
	kubelet := nodeCommand(t, kubeletVariable)
	s := begin(t)
	second := s.inLine()
	agent := s.agentOf(second)
	kubelet("stop")
	t.Cleanup(func() { kubelet("restart") })
	goOn := s.stall(agent)
	s.eventually(startWithin, "the stalled agent has ended itself", agent.gone)
	if n := len(s.lives()); n != 1 {
		t.Errorf("%d apps have started, want 1", n)
	}
	goOn()
	kubelet("start")
	s.awaitNextAgent(second, agent)
	s.mustBeNext()
}

// A gate that is killed is started again, whatever the pod's restart policy is:
// the pod waits on in its place, and does not fail.
func TestAKilledGateGoesOnWaiting(t *testing.T) {
	t.Parallel()
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			second := s.inLine(func(spec *corev1.PodSpec) { spec.RestartPolicy = policy })
			agent, gate := s.agentOf(second), s.gateOf(second)
			s.signal(gate, syscall.SIGKILL)
			s.eventually(startWithin, "the gate waits again", func() bool {
				now := findProcess(second, gateCommand...)
				return now != 0 && now != gate
			})
			if agent.gone() {
				t.Error("the agent has ended with the gate")
			}
			if n := len(s.lives()); n != 1 {
				t.Errorf("%d apps have started, want 1", n)
			}
			s.mustBeNext()
			s.eventually(startWithin, "the gate's restart is counted", func() bool {
				return status(s.get("second"), gateName).RestartCount == 1
			})
		})
	}
}

// A frozen agent of a pod that waits is restarted, and its pod still has its turn.
func TestCaseB12AFrozenWaiterIsRestartedAndHasItsTurn(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.pod("first", mutex(lockName))
	s.awaitLives(startWithin, 1)
	waiter := s.pod("second", mutex(lockName))
	s.awaitWaiters(1)
	s.eventually(startWithin, "its gate waits", func() bool {
		return status(s.get("second"), gateName).State.Running != nil
	})
	frozen := s.agentOf(waiter)
	s.freeze(frozen)
	s.awaitNextAgent(waiter, frozen)
	pause(ttl20 + 5*time.Second) // its old place, if it had one, is forgotten
	s.delete("first", -1)
	s.mustHandOver(0)
}
