//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A singleton rolls out with the strategy that is the default, however often, also
// while an earlier rollout is still under way. A pod of another workload that has
// waited all the time does not get in between.
func TestCaseB01RolloutsOfASingletonComplete(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		restarts int
		between  func(rollout)
		handoffs int // at least
	}{
		"five, one after another": {restarts: 5, between: rollout.mustComplete, handoffs: 5},
		// kubectl takes one restart a second. The first pods may be gone before they hold.
		"four, while an earlier one is under way": {restarts: 4, between: func(rollout) { pause(1500 * time.Millisecond) }, handoffs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			r := s.rollout()
			s.pod("third", mutex(lockName))
			s.awaitWaiters(1)
			for range tc.restarts {
				r.restart()
				tc.between(r)
			}
			r.mustComplete()
			s.eventually(startWithin, "one pod is left", func() bool { return len(s.podsOf(r.name)) == 1 })
			if n := len(s.livesOf("third")); n != 0 {
				t.Errorf("the third pod had the lock in between, %d times", n)
			}
			if gaps := handoffs(s.lives()); len(gaps) < tc.handoffs {
				t.Errorf("the lock was handed over %d times, want %d at least", len(gaps), tc.handoffs)
			}
			r.scale("0")
			s.eventually(startWithin, "the third pod has its turn after the last one", func() bool { return s.newest().pod == "third" })
		})
	}
}

// Scaled to nothing, a singleton leaves nothing behind, and comes back.
func TestASingletonIsScaledToNothingAndBack(t *testing.T) {
	t.Parallel()
	s := begin(t)
	r := s.rollout()
	r.restart() // scaling interrupts the rollout
	pause(time.Second)
	r.scale("0")
	s.eventually(startWithin, "the lock is free, and nobody waits", func() bool {
		_, held := s.held()
		return !held && s.waiters() == 0 && len(s.podsOf(r.name)) == 0
	})
	lives := len(s.lives())
	r.scale("1")
	s.awaitLives(startWithin, lives+1)
	r.mustComplete()
}

// With maxUnavailable: 1 the old pod is deleted as soon as the new one is there. An
// app that takes its time to end is not hurried by the new one's wish.
func TestATerminatingHolderDoesNotYield(t *testing.T) {
	t.Parallel()
	s := begin(t)
	r := s.rollout(podSpec(apps(app("app", "-on-term=12s"))), func(d *appsv1.Deployment) {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt(1))}
	})
	asked := s.watchYields()
	r.restart()
	r.mustComplete()
	s.awaitLives(startWithin, 2)

	before := s.lives()[0]
	term, end := before.at("term", ""), before.at("end", "0")
	if term == 0 || end-term < 12*time.Second {
		t.Errorf("the old app had TERM at %.3f and ended at %.3f, want 12 s later", term.Seconds(), end.Seconds())
	}
	if yields := asked(); len(yields) == 0 || yields[0] > end {
		t.Errorf("asked to yield at %v, want it before the end of the old app: this shows nothing", yields)
	}
	s.mustHandOver(0)
}

// The new pod is gone before it holds. The old pod's app has been stopped for it,
// and starts again with the hold that it had; the next new pod asks again, later.
func TestAnHeirThatIsGoneInheritsNothing(t *testing.T) {
	t.Parallel()
	s := begin(t)
	ignoring := func(name string) corev1.Container { return app(name, "-on-term=ignore") }
	// Each container takes two seconds to be killed.
	slow := apps(ignoring("app"), ignoring("b"), ignoring("c"))
	controller := s.controller()
	s.replicaSet("web-1", "1", controller, slow)
	old := s.awaitLives(startWithin, 3)[0].pod
	asked, before := s.watchYields(), s.mustHold()
	s.replicaSet("web-2", "2", controller, slow)
	s.awaitYield(asked)
	s.scaleReplicaSet("web-2", 0)

	for _, l := range s.awaitLives(startWithin, 6) {
		if l.pod != old || l.token != before.tokenText() {
			t.Errorf("%s ran with token %s, want %s alone, with token %d", l.pod, l.token, old, before.token)
		}
	}
	s.mustBeSame(before)
	s.scaleReplicaSet("web-2", 1)
	s.awaitNewest(old)
}

// Pods without a gate are ready at once, so that their rollout needs no handoff;
// at most one of them believes to hold at any time.
func TestReplicasWithoutAGateRollOut(t *testing.T) {
	t.Parallel()
	s := begin(t)
	r := s.rollout(annotated(mutex(lockName, "gate", "none")), podSpec(apps(app("app", "-lock=standby"))), func(d *appsv1.Deployment) {
		d.Spec.Replicas = new(int32(3))
	})
	for range 2 {
		r.restart()
		r.mustComplete()
	}
	s.awaitLives(startWithin, 9)
	last := fmt.Sprint(s.mustHold().token)
	s.eventually(startWithin, "a pod of the last revision believes to hold", func() bool {
		for _, l := range s.lives() {
			for _, b := range l.beliefs() {
				if b.token == last {
					return true
				}
			}
		}
		return false
	})
	s.mustBelieveOneByOne()
}

// belief is a time in which an app found the file "held".
type belief struct {
	pod, token string
	from, to   time.Duration
}

func (l life) beliefs() []belief {
	var all []belief
	for i, e := range l.events {
		if (e.what != "start" && e.what != "held") || e.text == "-" {
			continue
		}
		to := l.last
		for _, later := range l.events[i+1:] {
			if later.what == "held" {
				to = later.at
				break
			}
		}
		all = append(all, belief{l.pod, e.text, e.at, to})
	}
	return all
}

// mustBelieveOneByOne fails the test if two pods believed to hold at one time.
func (s *trial) mustBelieveOneByOne() {
	s.t.Helper()
	var all []belief
	for _, l := range s.lives() {
		all = append(all, l.beliefs()...)
	}
	if len(all) < 2 {
		s.t.Errorf("%d apps have ever held, want 2 at least", len(all))
	}
	for _, a := range all {
		for _, b := range all {
			if a.pod != b.pod && a.from <= b.from && b.from < a.to {
				s.t.Errorf("%s believed to hold until %.3f, and %s from %.3f", a.pod, a.to.Seconds(), b.pod, b.from.Seconds())
			}
		}
	}
}
