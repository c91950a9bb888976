//go:build e2e

package e2e

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two Deployments under one mutex: the second one waits however long it takes,
// and starts within two seconds of the first one's end, which is nearly all the
// node's. Nothing else runs meanwhile.
func TestASecondDeploymentWaitsForTheEndOfTheFirst(t *testing.T) {
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

	s.awaitRest() // on a busy node the lock is free after 2.5 s
	if err := shared.AppsV1().Deployments(s.namespace).Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	before, after := s.mustHandOver(0)
	want := 2 * time.Second
	if floor := figureValues(figureFloor); len(floor) > 0 {
		slowest := time.Duration(slices.Max(floor) * float64(time.Second))
		want = max(want, freePlain+slowest)
	}
	if took := after.start - before.at("term", ""); took > want {
		t.Errorf("the second one's app started %s after TERM to the first one's, want %s at most", took, want)
	}
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

// ttl20 is the shortest TTL that stops an app.
const ttl20 = 20 * time.Second

// holders is the lives under the trial's lock.
func (s *trial) holders() []life {
	s.t.Helper()
	return slices.DeleteFunc(s.lives(), func(l life) bool { return l.lock != lockName })
}

// awaitHolders waits until n processes have been started under the trial's lock.
func (s *trial) awaitHolders(within time.Duration, n int) []life {
	s.t.Helper()
	var lives []life
	s.eventually(within, "the next app has started", func() bool {
		lives = s.holders()
		return len(lives) >= n
	})
	return lives
}

// awaitHandOver waits for the holder after the n-th, and checks that it got the
// lock after the n-th app's end.
func (s *trial) awaitHandOver(n int) (before, after life, granted time.Duration) {
	s.t.Helper()
	lives := s.awaitHolders(startWithin+ttl20, n+2)
	before, after = lives[n], lives[n+1]
	granted = grantedAt(s.t, after.token)
	s.t.Logf("free %.3f s after the app's end, next app %.3f s after that", (granted - before.last).Seconds(), (after.start - granted).Seconds())
	if granted < before.last {
		s.t.Errorf("the lock was free %s before the app had ended", before.last-granted)
	}
	return before, after, granted
}

// mustHandOver is awaitHandOver, and checks that the lock was not left to its
// TTL: the next one has it when TERM came to the agent or, in doubt, five seconds
// later. TERM comes when the kubelet has seen the app's end, which on a busy node
// takes it seconds: what Holdfast needs is for TestHowAPodsEndFreesTheLock to say.
func (s *trial) mustHandOver(n int) (before, after life) {
	s.t.Helper()
	before, after, granted := s.awaitHandOver(n)
	if free := granted - before.last; free > ttl20/2 {
		s.t.Errorf("the lock was free %s after the app's end, want %s at most", free, ttl20/2)
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
