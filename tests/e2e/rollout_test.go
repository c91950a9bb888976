//go:build e2e

package e2e

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rollout is a Deployment whose pods want the trial's mutex, and what is done to
// it with kubectl.
type rollout struct {
	*trial
	name string
}

// rollout creates one of one replica, with the strategy that is the default, and
// waits for its app.
func (s *trial) rollout(changes ...func(*appsv1.Deployment)) rollout {
	s.t.Helper()
	r := rollout{s, "web"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": r.name}}
	d.Spec.Template = s.template(r.name, mutex(lockName))
	for _, change := range changes {
		change(d)
	}
	if _, err := shared.AppsV1().Deployments(s.namespace).Create(s.t.Context(), d, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	r.mustComplete()
	s.awaitLives(startWithin, 1)
	return r
}

// podSpec changes the pods of a Deployment.
func podSpec(changes ...func(*corev1.PodSpec)) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		for _, change := range changes {
			change(&d.Spec.Template.Spec)
		}
	}
}

// annotated sets the annotations of a Deployment's pods.
func annotated(a map[string]string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Annotations = a }
}

// kubectl runs one in the namespace.
func (r rollout) kubectl(args ...string) (string, error) {
	out, err := exec.CommandContext(r.t.Context(), "kubectl", append([]string{"-n", r.namespace}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (r rollout) mustKubectl(args ...string) {
	r.t.Helper()
	if out, err := r.kubectl(args...); err != nil {
		r.t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// restart makes a new revision.
func (r rollout) restart() { r.t.Helper(); r.mustKubectl("rollout", "restart", "deployment", r.name) }

// undo goes back to a revision, or to the one before the latest if it is empty.
func (r rollout) undo(revision string) {
	r.t.Helper()
	args := []string{"rollout", "undo", "deployment", r.name}
	if revision != "" {
		args = append(args, "--to-revision", revision)
	}
	r.mustKubectl(args...)
}

func (r rollout) scale(replicas string) {
	r.t.Helper()
	r.mustKubectl("scale", "deployment", r.name, "--replicas", replicas)
}

// completes tells whether the latest revision is all there is within that time.
func (r rollout) completes(within time.Duration) (string, bool) {
	out, err := r.kubectl("rollout", "status", "deployment", r.name, "--timeout", within.String())
	return out, err == nil
}

// mustComplete is the end of a rollout that nobody helps along.
func (r rollout) mustComplete() {
	r.t.Helper()
	if out, ok := r.completes(2 * startWithin); !ok {
		r.t.Fatalf("the rollout does not complete: %s", out)
	}
}

// change makes a new revision of other pods.
func (r rollout) change(change func(*corev1.PodSpec)) {
	r.t.Helper()
	deployments := shared.AppsV1().Deployments(r.namespace)
	r.eventually(startWithin, "the Deployment is changed", func() bool {
		d, err := deployments.Get(r.t.Context(), r.name, metav1.GetOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		change(&d.Spec.Template.Spec)
		_, err = deployments.Update(r.t.Context(), d, metav1.UpdateOptions{})
		return err == nil
	})
}

// livesOf are the processes of one pod.
func (s *trial) livesOf(pod string) []life {
	s.t.Helper()
	return slices.DeleteFunc(s.lives(), func(l life) bool { return l.pod != pod })
}

// newest is the process that was started last.
func (s *trial) newest() life {
	s.t.Helper()
	lives := s.lives()
	return lives[len(lives)-1]
}

// awaitNewest waits until the process that was started last is another pod's.
func (s *trial) awaitNewest(notOf string) life {
	s.t.Helper()
	s.eventually(2*startWithin, "the app of another pod than "+notOf+" has started", func() bool { return s.newest().pod != notOf })
	return s.newest()
}

// handoffs are the gaps between the end of one pod's app and the start of the next
// one's.
func handoffs(lives []life) []time.Duration {
	var gaps []time.Duration
	for i := 1; i < len(lives); i++ {
		if lives[i].pod != lives[i-1].pod {
			gaps = append(gaps, lives[i].start-lives[i-1].last)
		}
	}
	return gaps
}

// watchYields notes when holders are asked to yield, by the messages that they
// get.
func (s *trial) watchYields() (asked func() []time.Duration) {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	messages := s.db.PSubscribe(ctx, s.mutexKey()+":wake:*")
	if _, err := messages.Receive(ctx); err != nil {
		s.t.Fatal(err)
	}
	times := make(chan []time.Duration, 1)
	times <- nil
	go func() {
		for m := range messages.Channel(redis.WithChannelSize(1000)) {
			if strings.HasPrefix(m.Payload, "yield") {
				times <- append(<-times, boot())
			}
		}
	}()
	s.t.Cleanup(func() { stop(); _ = messages.Close() })
	return func() []time.Duration {
		now := <-times
		times <- now
		return slices.Clone(now)
	}
}

// awaitYield waits until a holder is asked.
func (s *trial) awaitYield(asked func() []time.Duration) time.Duration {
	s.t.Helper()
	s.eventually(startWithin, "the holder is asked to yield", func() bool { return len(asked()) > 0 })
	return asked()[0]
}

// The Deployment controller waits for the new pod, and that one for the old one's
// lock: with handoff off this lasts for ever, which is why it is not the default.
func TestCaseB01WithoutHandoffARolloutWaitsForItself(t *testing.T) {
	t.Parallel()
	s := begin(t)
	r := s.rollout(annotated(mutex(lockName, "handoff", "off")))
	before := s.mustHold()
	r.restart()
	if out, ok := r.completes(20 * time.Second); ok {
		t.Fatalf("the rollout completes: %s", out)
	}
	if n := len(s.podsOf(r.name)); n != 2 || s.waiters() != 1 {
		t.Errorf("%d pods and %d waiters, want the old pod, and the new one that waits", n, s.waiters())
	}
	s.mustBeSame(before)
}
