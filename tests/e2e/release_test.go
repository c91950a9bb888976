//go:build e2e

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// However a pod ends, the next one has the lock after the app's end, never
// before, and soon.
func TestHowAPodsEndFreesTheLock(t *testing.T) {
	t.Parallel()
	hook := func(seconds string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) {
			spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
				Exec: &corev1.ExecAction{Command: []string{"sleep", seconds}},
			}}
		}
	}
	for name, tc := range map[string]struct {
		app []string
		pod []func(*corev1.PodSpec)
		end func(*trial)
	}{
		"deleted, the app heeds TERM": {
			end: func(s *trial) { s.delete("first", -1) },
		},
		"deleted, the app takes a part of its grace period": {
			app: []string{"-on-term=4.5s"},
			end: func(s *trial) { s.delete("first", -1) },
		},
		"deleted, the app takes more than its whole grace period": {
			app: []string{"-on-term=ignore"},
			pod: []func(*corev1.PodSpec){grace(6)},
			end: func(s *trial) { s.delete("first", -1) },
		},
		"deleted, a preStop hook takes a part of the grace period": {
			pod: []func(*corev1.PodSpec){hook("4")},
			end: func(s *trial) { s.delete("first", -1) },
		},
		"deleted, a preStop hook eats the whole grace period": {
			app: []string{"-on-term=ignore"},
			pod: []func(*corev1.PodSpec){hook("60"), grace(6)},
			end: func(s *trial) { s.delete("first", -1) },
		},
		"deleted with another grace period than its own": {
			app: []string{"-on-term=ignore"},
			end: func(s *trial) { s.delete("first", 3) },
		},
		"deleted by force": {
			app: []string{"-on-term=ignore"},
			end: func(s *trial) { s.delete("first", 0) },
		},
		"evicted": {
			end: func(s *trial) {
				eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: s.namespace}}
				if err := shared.PolicyV1().Evictions(s.namespace).Evict(s.t.Context(), eviction); err != nil {
					s.t.Fatal(err)
				}
			},
		},
		"ended by itself": {
			app: []string{"-run=8s"},
			pod: []func(*corev1.PodSpec){never},
			end: func(*trial) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			s.pod("first", mutex(lockName), append([]func(*corev1.PodSpec){apps(app("app", tc.app...))}, tc.pod...)...)
			s.awaitLives(startWithin, 1)
			s.pod("second", mutex(lockName))
			s.awaitWaiters(1)
			tc.end(s)
			s.mustHandOver(0)
		})
	}
}

// A pod that is deleted while it waits is out of the queue at once.
func TestAPodDeletedWhileWaitingLeavesTheQueue(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.pod("first", mutex(lockName))
	s.awaitLives(startWithin, 1)
	s.pod("second", mutex(lockName))
	s.awaitWaiters(1)
	s.delete("second", -1)
	s.eventually(5*time.Second, "the queue is empty", func() bool { return s.waiters() == 0 })
	if h := s.mustHold(); h.tokenText() != s.lives()[0].token {
		t.Errorf("the holder has token %d, want %s as before", h.token, s.lives()[0].token)
	}
}
