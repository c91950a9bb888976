//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What is not promised, so that docs/guarantees.md can say how bad it is: the
// tests of this file only measure how long the app outlives its hold.

// Ten pods of one node that lose their locks at the same moment, as when their
// Redis goes away. Ten plain pods, stopped at one moment, tell what the kubelet
// needs, which may be more than the margin has for it; but what Holdfast itself
// has to do is done in time for each of them.
func TestRecordedLossOfTenPodsAtOnce(t *testing.T) {
	s := begin(t)
	const pods = 10
	stubborn := app("app", "-on-term=ignore")
	plain := s.aside()
	name := func(i int) string { return fmt.Sprintf("lock%d", i) }
	for i := range pods {
		plain.pod(name(i), nil, apps(stubborn), alike(plainAgent("-until=stop", "-exit=87"), openGate()))
	}
	plain.awaitLives(startWithin+pods*time.Second, pods*(1+plainHelpers))
	plain.touch("stop")
	var floor time.Duration
	plain.eventually(2*time.Minute, "all plain pods have been stopped", func() bool {
		floor = 0
		for i := range pods {
			needed, done := plain.stopped(name(i))
			if !done {
				return false
			}
			floor = max(floor, needed)
		}
		return true
	})
	plain.remove("stop")
	for i := range pods {
		plain.delete(name(i), 0)
	}
	figure(notPromised, "ten plain pods at once: until the last app is dead", "s", floor.Seconds())

	made := map[string]*corev1.Pod{}
	for i := range pods {
		made[name(i)] = s.pod("pod-"+name(i), mutex(name(i)), apps(app("app", "-lock="+name(i), "-on-term=ignore")))
	}
	s.awaitLives(startWithin+pods*time.Second, pods)
	s.link.cut()
	pause(200 * time.Millisecond)
	ends := map[string]time.Duration{}
	for i := range pods {
		left, err := s.db.PTTL(t.Context(), "lock:{"+s.namespace+"/"+name(i)+"}").Result()
		if err != nil {
			t.Fatal(err)
		}
		ends[name(i)] = boot() + left
	}
	for i := range pods {
		s.awaitDeath(2*time.Minute, i)
	}
	for _, l := range s.lives()[:pods] {
		figure(notPromised, "ten pods of a node at once, apps that ignore TERM", "", share([]life{l}, ends[l.lock], ttl20))
		s.mustStopInTime(made[l.lock], ends[l.lock], l.at("held", "-"), []life{l}, floor)
	}
}

// The kubelet does one thing at a time in a pod.
func TestRecordedLossWhileTheKubeletIsBusyWithThePod(t *testing.T) {
	t.Parallel()
	other := func(change func(*corev1.Container)) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) {
			c := app("other", "-lock=none", "-on-term=ignore")
			change(&c)
			spec.Containers = append(spec.Containers, c)
		}
	}
	shell := func(script string) *corev1.LifecycleHandler {
		return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", script}}}
	}
	for name, change := range map[string]func(*corev1.Container){
		"a liveness kill with 40 s of grace in the same pod": func(c *corev1.Container) {
			c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: shell("[ ! -e /journal/now ]").Exec}, PeriodSeconds: 1, FailureThreshold: 1}
		},
		"a postStart hook of 40 s in the same pod": func(c *corev1.Container) {
			c.Command = []string{"sh", "-c", "[ -e /journal/now ] && sleep 1d; until [ -e /journal/now ]; do sleep 0.2; done; exit 1"}
			c.Lifecycle = &corev1.Lifecycle{PostStart: shell("[ ! -e /journal/now ] || sleep 40")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			s.pod("pod", mutex(lockName), grace(40), other(change))
			s.awaitReady("pod")
			end := s.cutOff()
			pause(end - boot() - ttl20/2)
			if err := os.WriteFile(filepath.Join(s.journal, "now"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			s.recordDeath(name, end)
		})
	}
}

// In a pod that is ending the kubelet restarts nothing, so the app's own end is
// what ends it.
func TestRecordedLossInAPodThatIsEnding(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.pod("pod", mutex(lockName), grace(35), apps(app("app", "-on-term=ignore")))
	s.awaitLives(startWithin, 1)
	end := s.cutOff()
	s.delete("pod", -1)
	s.recordDeath("a pod that is ending, with 35 s of grace", end)
}

// Nobody else stops an app. It is no test to run beside others.
func TestRecordedLossWithoutAKubelet(t *testing.T) {
	kubelet := nodeCommand(t, kubeletVariable)
	s := begin(t)
	s.pod("pod", mutex(lockName))
	s.awaitLives(startWithin, 1)
	end := s.cutOff()
	kubelet("stop")
	t.Cleanup(func() { kubelet("restart") })
	pause(end - boot() + ttl20/2)
	if s.dead(0) {
		t.Error("the app has ended without a kubelet: say so in docs/guarantees.md")
	}
	kubelet("start")
	s.recordDeath("no kubelet until half a TTL after the end of the hold", end)
}

// recordDeath waits for the app's end, and notes how much of the TTL was over.
func (s *trial) recordDeath(name string, end time.Duration) {
	s.t.Helper()
	var dead life
	s.eventually(2*time.Minute, "the app has ended", func() bool {
		for _, l := range s.lives() {
			if l.lock == lockName && boot()-l.last > time.Second {
				dead = l
				return true
			}
		}
		return false
	})
	figure(notPromised, name, "", share([]life{dead}, end, ttl20))
}
