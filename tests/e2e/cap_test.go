//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// capNamespaces may use locks of scope cluster; see install/settings.yaml.
var capNamespaces = []string{"e2e-cap-africa", "e2e-cap-america", "e2e-cap-asia"}

// Twelve Jobs of three namespaces and a CronJob share three permits: never more
// than three run, all complete, those that fail first as well, and nothing is
// left held.
func TestCaseB35ACapHoldsAcrossNamespacesAndKinds(t *testing.T) {
	t.Parallel()
	s := begin(t)
	awaitAbsence(t, capNamespaces)
	for _, namespace := range capNamespaces {
		s.newNamespace(namespace)
	}
	t.Cleanup(func() { s.mustExclude("cap", 3) })

	keys := annotations("semaphore", "cap", "permits", "3", "scope", "cluster", "ttl", "20s")
	s.cronJob(capNamespaces[0], "cron", keys)
	for i := range 12 {
		flags := []string{"-lock=cap", "-run=3s"}
		pod := []func(*corev1.PodSpec){never}
		if i%4 == 0 { // fails, and a new pod takes over
			flags = append(flags, "-failures=1")
		}
		if i%4 == 1 { // fails, and the container is restarted
			flags = append(flags, "-failures=1")
			pod = []func(*corev1.PodSpec){func(spec *corev1.PodSpec) { spec.RestartPolicy = corev1.RestartPolicyOnFailure }}
		}
		pod = append(pod, apps(app("app", flags...)))
		s.job(capNamespaces[i%3], fmt.Sprintf("job%02d", i), keys, pod...)
	}
	s.eventually(5*time.Minute, "all Jobs are complete, one of the CronJob's among them", func() bool {
		return s.completed("job") == 12 && s.completed("cron") > 0
	})
	if most, _ := crowd(s.lives(), "cap"); most < 3 {
		t.Errorf("at most %d Jobs ran at one time, want 3: the permits were not used", most)
	}
	s.stopCron(capNamespaces[0], "cron")
	s.eventually(startWithin, "all permits are free", func() bool {
		now, err := s.db.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		// One that was cut short stays in the set after its end, until somebody calls.
		n, err := s.db.ZCount(t.Context(), "semaphore:{cluster:cap}", fmt.Sprint("(", now.UnixMilli()), "+inf").Result()
		return err == nil && n == 0
	})
}

// awaitAbsence waits for namespaces of an earlier run to be gone.
func awaitAbsence(t *testing.T, namespaces []string) {
	t.Helper()
	for _, name := range namespaces {
		for {
			_, err := shared.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				break
			}
			pause(time.Second)
		}
	}
}

// cronJob creates one that never lets two of its Jobs run.
func (s *trial) cronJob(namespace, name string, annotations map[string]string) {
	s.t.Helper()
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Schedule, c.Spec.ConcurrencyPolicy = "* * * * *", batchv1.ForbidConcurrent
	c.Spec.JobTemplate.Labels = map[string]string{"made-by": name}
	c.Spec.JobTemplate.Spec.Template = s.template(name, annotations, never, apps(app("app", "-lock=cap", "-run=1s")))
	if _, err := shared.BatchV1().CronJobs(namespace).Create(s.t.Context(), c, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *trial) stopCron(namespace, name string) {
	if err := shared.BatchV1().CronJobs(namespace).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// completed counts the Jobs that are complete and whose name begins so.
func (s *trial) completed(prefix string) int {
	s.t.Helper()
	n := 0
	for _, namespace := range capNamespaces {
		jobs, err := shared.BatchV1().Jobs(namespace).List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, j := range jobs.Items {
			if len(j.Name) >= len(prefix) && j.Name[:len(prefix)] == prefix && j.Status.CompletionTime != nil {
				n++
			}
		}
	}
	return n
}
