//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How soon a lock is free once the kubelet has come to the agent of a pod that
// ends; see "When TERM comes" in docs/guarantees.md.
const (
	freePlain   = time.Second             // it is certain that the app has ended
	freeBusy    = 3500 * time.Millisecond // the same on a busy node: the hold is cut short to 2.5 s
	freeInDoubt = 6 * time.Second         // the hold is cut short to 5 s
)

// However a pod ends, the next one has the lock after the app's end, never
// before, and soon. When the kubelet comes to the agent is not Holdfast's doing:
// a sidecar that it ends just before tells. Nothing else runs meanwhile, and the
// pods that end plainly do so one after another, once their node has come to rest.
func TestHowAPodsEndFreesTheLock(t *testing.T) {
	hook := func(seconds string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) {
			spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
				Exec: &corev1.ExecAction{Command: []string{"sleep", seconds}},
			}}
		}
	}
	tests := map[string]struct {
		app  []string
		pod  []func(*corev1.PodSpec)
		end  func(*trial)
		want time.Duration // on a node at rest
	}{
		"deleted, the app heeds TERM": {
			end:  func(s *trial) { s.delete("first", -1) },
			want: freePlain,
		},
		"deleted, the app takes a part of its grace period": {
			app:  []string{"-on-term=4.3s"},
			end:  func(s *trial) { s.delete("first", -1) },
			want: freePlain,
		},
		"deleted, a preStop hook takes a part of the grace period": {
			pod:  []func(*corev1.PodSpec){hook("3.3")},
			end:  func(s *trial) { s.delete("first", -1) },
			want: freePlain,
		},
		"evicted": {
			end: func(s *trial) {
				eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: s.namespace}}
				if err := shared.PolicyV1().Evictions(s.namespace).Evict(s.t.Context(), eviction); err != nil {
					s.t.Fatal(err)
				}
			},
			want: freePlain,
		},
		"ended by itself": {
			app:  []string{"-until=done"},
			pod:  []func(*corev1.PodSpec){never},
			end:  func(s *trial) { s.touch("done") },
			want: freePlain,
		},
		"deleted, the app takes more than its whole grace period": {
			app:  []string{"-on-term=ignore"},
			pod:  []func(*corev1.PodSpec){grace(6)},
			end:  func(s *trial) { s.delete("first", -1) },
			want: freeInDoubt,
		},
		"deleted, a preStop hook eats the whole grace period": {
			app:  []string{"-on-term=ignore"},
			pod:  []func(*corev1.PodSpec){hook("60"), grace(6)},
			end:  func(s *trial) { s.delete("first", -1) },
			want: freeInDoubt,
		},
		"deleted with another grace period than its own": {
			app:  []string{"-on-term=ignore"},
			end:  func(s *trial) { s.delete("first", 3) },
			want: freeInDoubt,
		},
		"deleted by force": {
			app:  []string{"-on-term=ignore"},
			end:  func(s *trial) { s.delete("first", 0) },
			want: freeInDoubt,
		},
	}
	trials := map[string]*trial{}
	for name, tc := range tests {
		s := begin(t)
		trials[name] = s
		s.pod("first", mutex(lockName), append([]func(*corev1.PodSpec){apps(app("app", tc.app...)), witness}, tc.pod...)...)
		s.awaitHolders(startWithin, 1)
		s.pod("second", mutex(lockName))
	}
	for _, s := range trials {
		s.awaitWaiters(1)
	}
	asked := map[string]time.Duration{}
	for name, tc := range tests {
		if tc.want == freeInDoubt {
			asked[name] = boot()
			tc.end(trials[name])
		}
	}
	for name := range asked {
		t.Run(name, func(t *testing.T) { trials[name].in(t, func(s *trial) { s.mustFree(asked[name], freeInDoubt) }) })
	}
	for name, tc := range tests {
		if tc.want == freePlain {
			t.Run(name, func(t *testing.T) {
				trials[name].in(t, func(s *trial) {
					s.awaitRest()
					asked := boot()
					tc.end(s)
					s.mustFree(asked, freePlain)
				})
			})
		}
	}
}

// in lets a part of a trial be another test's.
func (s *trial) in(t *testing.T, part func(*trial)) {
	whole := s.t
	s.t = t
	defer func() { s.t = whole }()
	part(s)
}

// awaitRest gives the node time to come to rest, which it does not where others
// use it too.
func (s *trial) awaitRest() {
	s.t.Helper()
	for until := boot() + 30*time.Second; busy() && boot() < until; {
		pause(pollEvery)
	}
}

// busy tells whether processes of this machine had to wait in the last ten
// seconds for a tenth of the time.
func busy() bool {
	text, _ := os.ReadFile("/proc/pressure/cpu")
	var waited float64
	n, _ := fmt.Sscanf(string(text), "some avg10=%f", &waited)
	return n == 0 || waited >= 10
}

// mustFree waits for the first pod's end, which was asked for then, and checks
// how soon the second one had the lock.
func (s *trial) mustFree(asked, want time.Duration) {
	s.t.Helper()
	before, _, granted := s.awaitHandOver(0)
	sidecar := s.lifeOf("first", "witness")
	told := sidecar.last            // and now the kubelet comes to the agent
	if before.at("term", "") == 0 { // the pod's end began when its app had ended
		asked = sidecar.at("term", "")
	}
	s.t.Logf("the app ended %.3f s after it was asked to; the node needed %.3f s more, Holdfast %.3f s",
		(before.last - asked).Seconds(), (told - before.last).Seconds(), (granted - told).Seconds())
	switch {
	case want == freePlain && inDoubt(told-asked):
		s.t.Log("the node was so slow that it looked like a grace period's end")
		want = freeInDoubt
	case want == freePlain && busy():
		s.t.Log("the node is busy")
		want = freeBusy
	}
	if free := granted - max(told, before.last); free > want {
		s.t.Errorf("the lock was free %s after the end of the app and of a sidecar, want %s at most", free, want)
	}
}

// witness is a sidecar that the kubelet ends after the app and before the agent.
func witness(spec *corev1.PodSpec) {
	c := app("witness", "-lock=none")
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	spec.InitContainers = append(spec.InitContainers, c)
}

// inDoubt tells whether an agent that the kubelet comes to so long after it has
// begun to end a pod may take that for the end of a grace period, as
// docs/guarantees.md says, seen from outside: give or take a quarter of a second.
func inDoubt(took time.Duration) bool {
	const blur, slack = 250 * time.Millisecond, 250 * time.Millisecond
	if took < 2*time.Second+blur {
		return took > time.Second-slack-blur
	}
	return (took+blur)%time.Second < slack+2*blur
}

// An agent that is killed while its pod ends frees nothing; the hold then ends
// with its TTL, and the next one in line is there.
func TestAnAgentKilledWithItsPodFreesTheLockAfterTheTTL(t *testing.T) {
	t.Parallel()
	s := begin(t)
	pod := s.pod("first", mutex(lockName), apps(app("app", "-on-term=2s")))
	s.awaitHolders(startWithin, 1)
	s.pod("second", mutex(lockName))
	s.awaitWaiters(1)
	agent := s.agentOf(pod)
	s.delete("first", -1)
	s.eventually(startWithin, "the app has got TERM", func() bool { return s.holders()[0].at("term", "") != 0 })
	s.signal(agent, syscall.SIGKILL)
	s.eventually(startWithin, "the agent is gone", agent.gone)
	end := s.mustHold().expiry

	_, _, granted := s.awaitHandOver(0)
	if late := granted - end; late > time.Second {
		t.Errorf("the next one had the lock %s after the end of the hold, want 1 s at most", late)
	}
}

// A pod that is deleted while it waits is out of the queue at once: before the
// kubelet comes to a sidecar that it ends after the agent.
func TestAPodDeletedWhileWaitingLeavesTheQueue(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.pod("first", mutex(lockName))
	s.awaitHolders(startWithin, 1)
	s.pod("second", mutex(lockName, "order", "last"), witness)
	s.awaitWaiters(1)
	s.delete("second", -1)
	s.eventually(startWithin, "the sidecar has got TERM", func() bool {
		return s.lifeOf("second", "witness").at("term", "") != 0
	})
	if n := s.waiters(); n != 0 {
		t.Errorf("%d pods wait, want none", n)
	}
	if h := s.mustHold(); h.tokenText() != s.holders()[0].token {
		t.Errorf("the holder has token %d, want %s as before", h.token, s.holders()[0].token)
	}
}
