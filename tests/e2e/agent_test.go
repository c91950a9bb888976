//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An agent that is killed takes its app with it, as nobody would stop the app in
// time; the pod restarts in place with the hold that it had.
func TestAKilledAgentsPodRestartsWithItsHold(t *testing.T) {
	t.Parallel()
	s := begin(t)
	pod := s.pod("pod", mutex(lockName))
	s.awaitLives(startWithin, 1)
	s.pod("next", mutex(lockName))
	s.awaitWaiters(1)
	before := s.mustHold()
	s.signal(s.agentOf(pod), syscall.SIGKILL)

	after := s.awaitLives(startWithin, 2)[1]
	if after.pod != "pod" || after.token != before.tokenText() {
		t.Errorf("next started %s with token %s, want the same pod with token %d", after.pod, after.token, before.token)
	}
	if h := s.mustHold(); h.owner != before.owner {
		t.Errorf("the owner changed")
	}
	s.eventually(startWithin, "the agent's container shows a restart", func() bool {
		return status(s.get("pod"), agentName).RestartCount == 1
	})
}

// A frozen agent is restarted beside its app, which notices nothing. The second
// time within ten minutes the kubelet would wait before it starts the agent
// again, so then the pod is restarted in place, with its hold.
func TestAFrozenAgentIsRestartedBesideItsApp(t *testing.T) {
	t.Parallel()
	for _, probe := range []string{"http", "exec"} {
		t.Run(probe, func(t *testing.T) {
			t.Parallel()
			frozenTwice(t, probe)
		})
	}
}

func frozenTwice(t *testing.T, probe string) {
	t.Helper()
	s := begin(t)
	pod := s.pod("pod", mutex(lockName, "ttl", "30s", "probe", probe))
	s.awaitLives(startWithin, 1)
	s.pod("next", mutex(lockName))
	s.awaitWaiters(1)
	before := s.mustHold()

	first := s.agentOf(pod)
	s.awaitRenewal()
	s.freeze(first)
	frozen := boot()
	s.awaitNextAgent(pod, first)
	figure(cost, "an agent of TTL 30 s is frozen → the kubelet has started the next, "+probe+" probes", "s", (boot() - frozen).Seconds())
	pause(3 * time.Second) // for the renewal after which it would restart the pod
	lives := s.lives()
	if len(lives) != 1 || boot()-lives[0].last > time.Second {
		t.Fatalf("the app did not run on: %v", lives)
	}
	if lost := lives[0].at("held", "-"); lost != 0 {
		t.Errorf("held was gone at %.3f", lost.Seconds())
	}
	s.mustBeSame(before)

	second := s.agentOf(pod)
	s.awaitRenewal()
	s.freeze(second)
	after := s.awaitLives(startWithin, 2)[1]
	if after.pod != "pod" || after.token != before.tokenText() {
		t.Errorf("next started %s with token %s, want the same pod with token %d", after.pod, after.token, before.token)
	}
	s.mustBeSame(before)
}

// awaitRenewal leaves the kubelet the most time before the hold ends.
func (s *trial) awaitRenewal() {
	s.t.Helper()
	before := s.mustHold().expiry
	s.eventually(startWithin, "the hold has been renewed", func() bool { return s.mustHold().expiry > before+time.Second })
}

func (s *trial) awaitNextAgent(pod *corev1.Pod, old process) {
	s.t.Helper()
	s.eventually(time.Minute, "the kubelet has restarted the agent", func() bool {
		now := findProcess(pod, agentCommand...)
		return old.gone() && now != 0 && now != old
	})
}

// mustBeSame checks that the hold is still the one it was.
func (s *trial) mustBeSame(before hold) {
	s.t.Helper()
	if h := s.mustHold(); h.owner != before.owner || h.token != before.token {
		s.t.Errorf("the hold is not the one it was: token %d, want %d", h.token, before.token)
	}
}

// Frozen while Redis is unreachable, the agent that comes after must find that
// it cannot keep the hold, and stop the app before the TTL is over.
func TestAFrozenAgentWithoutRedisStopsTheAppInTime(t *testing.T) {
	t.Parallel()
	s := begin(t)
	pod := s.pod("pod", mutex(lockName, "ttl", "30s"))
	s.awaitLives(startWithin, 1)
	end := s.cutOff()
	s.freeze(s.agentOf(pod))
	s.mustDieBy(end, 1)
	figure(loss, "an agent that is frozen meanwhile", "", share(s.lives(), end, 30*time.Second))
}

// An agent with hardly any CPU is late with all it does, TERM included; even so
// nobody else holds while its app lives.
func TestAStarvedAgentNeverSharesItsLock(t *testing.T) {
	t.Parallel()
	s := begin(t)
	pod := s.pod("pod", mutex(lockName))
	s.awaitLives(startWithin, 1)
	s.pod("next", mutex(lockName))
	s.awaitWaiters(1)
	s.starve(s.agentOf(pod))
	pause(15 * time.Second)
	s.delete("pod", 10)
	s.eventually(2*time.Minute, "the next pod's app has started", func() bool {
		return slices.ContainsFunc(s.lives(), func(l life) bool { return l.pod == "next" })
	})
}

// A new image for the agent alone would be a TERM with its preStop hook, as if the
// app had ended, in a pod whose app runs on. So it is refused; other images are
// the user's own business.
func TestTheAgentsImageCannotChange(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.pod("pod", mutex(lockName))
	s.awaitLives(startWithin, 1)
	before := s.mustHold()
	patch := []byte(`{"spec":{"initContainers":[{"name":"` + agentName + `","image":"` + agentImage + `-again"}]}}`)
	_, err := shared.CoreV1().Pods(s.namespace).Patch(t.Context(), "pod", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "the image of holdfast-agent cannot change") {
		t.Errorf("the new image got %v, want a refusal that says why", err)
	}
	s.mustBeSame(before)
}

// TERM to the agent alone, as from a hand at the node's tools: nobody told it
// that the app has ended, so nobody else gets the lock while the app lives, and
// the pod, which restarts in place, keeps it.
func TestCaseB08TermToTheAgentAloneFreesNothing(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"the app heeds TERM":   nil,
		"the app ignores TERM": {"-on-term=ignore"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			pod := s.pod("pod", mutex(lockName), apps(app("app", flags...)))
			s.awaitLives(startWithin, 1)
			s.pod("next", mutex(lockName))
			s.awaitWaiters(1)
			agent, before := s.agentOf(pod), s.mustHold()
			termed := boot()
			s.signal(agent, syscall.SIGTERM)
			next := s.awaitLives(startWithin, 2)[1]
			if next.start < s.lives()[0].last {
				t.Errorf("%s started while the first app lived", next.pod)
			}
			// So long the hold lives on for the agent to come back.
			_, margin := timing(pod)
			comeback := margin + 3*time.Second
			switch free := grantedAt(t, next.token) - termed; {
			case next.token == before.tokenText():
			case free < comeback-time.Second:
				t.Errorf("%s got the lock %s after TERM, want the pod to keep it", next.pod, free)
			default:
				t.Logf("the kubelet took more than %s to start the agent again", comeback)
			}
		})
	}
}
