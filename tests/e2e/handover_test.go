//go:build e2e

package e2e

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two Deployments under one mutex: the second one waits however long it takes,
// and starts right after the first one's end.
func TestASecondDeploymentWaitsForTheEndOfTheFirst(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.deployment("first", mutex(lockName))
	s.awaitLives(startWithin, 1)
	s.deployment("second", mutex(lockName))
	s.awaitWaiters(1)
	pause(3 * time.Second)
	if n := len(s.lives()); n != 1 {
		t.Fatalf("%d apps have started while the first one ran, want 1", n)
	}
	s.mustShow(s.podsOf("second")[0].Name, atTheGate)

	if err := shared.AppsV1().Deployments(s.namespace).Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.mustHandOver(0)
}

// What `kubectl get pods` says of a pod that waits: the gate is the last of the
// three init containers. A pod that was restarted in place is no longer counted.
const (
	atTheGate      = "Init:2/3"
	atTheGateAgain = "PodInitializing"
)

// mustShow checks the STATUS of `kubectl get pods`.
func (s *trial) mustShow(pod, want string) {
	s.t.Helper()
	s.eventually(startWithin, pod+" is shown as "+want, func() bool {
		out, err := exec.Command("kubectl", "get", "pod", "-n", s.namespace, pod, "--no-headers").Output()
		line := strings.Fields(string(out))
		return err == nil && len(line) > 2 && line[2] == want
	})
}

// awaitWaiters waits until so many are in the queue.
func (s *trial) awaitWaiters(n int) {
	s.t.Helper()
	s.eventually(startWithin, "a pod waits in line", func() bool { return s.waiters() == n })
}

// freeWithin is how soon after an app's end the next one has the lock, on a node
// that has much else to do. An agent that may be ended with its app, and not
// after it, cuts the hold short to five seconds, and on a busy node any may.
const freeWithin = 10 * time.Second

// ttl20 is the shortest TTL that stops an app.
const ttl20 = 20 * time.Second

// mustHandOver waits for the app after the n-th and checks that it got the lock
// after the n-th app's end and soon enough, and started without delay.
func (s *trial) mustHandOver(n int) (before, after life) {
	s.t.Helper()
	lives := s.awaitLives(startWithin+ttl20, n+2)
	before, after = lives[n], lives[n+1]
	granted := grantedAt(s.t, after.token)
	free, gate := granted-before.last, after.start-granted
	s.t.Logf("free %.3f s after the app's end, next app %.3f s after that", free.Seconds(), gate.Seconds())
	if free < 0 {
		s.t.Errorf("the lock was free %s before the app had ended", -free)
	}
	if free > freeWithin {
		s.t.Errorf("the lock was free %s after the app's end, want %s at most", free, freeWithin)
	}
	return before, after
}

// grantedAt is when Redis made this token: its clock in microseconds, which is
// this machine's.
func grantedAt(t *testing.T, token string) time.Duration {
	t.Helper()
	us, err := time.ParseDuration(token + "us")
	if err != nil {
		t.Fatalf("token %q: %v", token, err)
	}
	return boot() - (time.Duration(time.Now().UnixNano()) - us)
}
