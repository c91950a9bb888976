//go:build e2e

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// An undo gives the old ReplicaSet, and so its old pod, a new revision. Only who
// watches the cluster knows: the webhook, which tells the agents through Redis. So
// these tests share the one Redis that it publishes to.
func TestUndo(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	shared.revisions.aim(server.Socket)
	t.Run("each", func(t *testing.T) { // ends when all of them have
		t.Run("to an older revision", undoToAnOlderRevision(server))
		for name, tc := range map[string]struct {
			change  func(*corev1.PodSpec)
			watched time.Duration // how long the old pod is seen to be left alone
		}{
			"of one that never becomes ready": {neverReady, 0},
			"of one that crashes":             {crashing, 40 * time.Second}, // a yield that failed could be asked for again after 30 s
		} {
			t.Run(name, undoOf(server, tc.change, tc.watched))
		}
		t.Run("of another kind of controller", undoOfAnotherKind(server))
	})
	shared.revisions.aim("")
	shared.revisions.drop()
}

func neverReady(spec *corev1.PodSpec) {
	spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "exit 1"}}},
		PeriodSeconds: 1,
	}
}

func crashing(spec *corev1.PodSpec) {
	neverReady(spec) // else it would be ready between two crashes
	spec.Containers[0].Command = append(spec.Containers[0].Command, "-run=1s", "-failures=1000")
}

func undoToAnOlderRevision(server *redistest.Server) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		s := beginAt(t, server)
		r := s.rollout()
		for range 2 {
			r.restart()
			r.mustComplete()
		}
		before := s.newest().pod
		r.undo("1")
		r.mustComplete()
		s.awaitNewest(before)
	}
}

// undoOf is of a revision that took the lock over and will not do: its pod and the
// old one are both there, and nobody deletes any.
func undoOf(server *redistest.Server, change func(*corev1.PodSpec), watched time.Duration) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		s := beginAt(t, server)
		r := s.rollout()
		old := s.newest().pod
		r.change(change)
		s.awaitNewest(old)
		pause(watched)
		if n := len(s.livesOf(old)); n != 1 {
			t.Errorf("the old app was started %d times before the undo, want once", n)
		}
		if n := len(s.podsOf(r.name)); n != 2 {
			t.Fatalf("%d pods, want the old one, and the new one that is not ready", n)
		}
		r.undo("")
		r.mustComplete()
		if last := s.newest(); last.pod != old {
			t.Errorf("%s runs, want the old pod %s: nobody has deleted it", last.pod, old)
		}
		gaps := handoffs(s.lives())
		t.Logf("from one pod's app to the other's: %v", gaps)
		if last := gaps[len(gaps)-1]; watched == 0 { // else the app of the other one may have crashed long before
			figure(handover, "an undo: end of the undone app → first line of the old one", "s", last.Seconds())
		}
	}
}

// Other controllers than Deployments note their revisions elsewhere.
func undoOfAnotherKind(server *redistest.Server) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		s := beginAt(t, server)
		controller := s.controller()
		s.replicaSet("web-1", "1", controller)
		first := s.awaitLives(startWithin, 1)[0].pod
		s.replicaSet("web-2", "2", controller)
		second := s.awaitNewest(first).pod
		patch := []byte(`{"metadata":{"annotations":{"rollout.argoproj.io/revision":"3"}}}`)
		if _, err := shared.AppsV1().ReplicaSets(s.namespace).Patch(t.Context(), "web-1", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if last := s.awaitNewest(second); last.pod != first {
			t.Errorf("%s runs, want %s again", last.pod, first)
		}
	}
}
