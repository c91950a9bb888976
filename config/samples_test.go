package config

import (
	"os/exec"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast/pkg/inject"
)

// sample is a workload of config/samples.
type sample struct {
	metav1.ObjectMeta
	pod corev1.PodTemplateSpec
}

func samples(t *testing.T) []sample {
	t.Helper()
	var all []sample
	for _, object := range objects(t, "samples/*.yaml") {
		switch o := object.(type) {
		case *appsv1.Deployment:
			all = append(all, sample{o.ObjectMeta, o.Spec.Template})
		case *batchv1.Job:
			all = append(all, sample{o.ObjectMeta, o.Spec.Template})
		case *batchv1.CronJob:
			all = append(all, sample{o.ObjectMeta, o.Spec.JobTemplate.Spec.Template})
		}
	}
	return all
}

func TestSamplesAreInjected(t *testing.T) {
	settings, err := inject.LoadSettings("settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	namespace := only[*corev1.Namespace](t, "samples/*.yaml")
	if namespace.Labels["holdfast.dev/enabled"] != "true" {
		t.Errorf("namespace %s is not enabled", namespace.Name)
	}
	all := samples(t)
	for _, s := range all {
		if s.Namespace != namespace.Name {
			t.Errorf("%s is in namespace %s, which is none of the samples", s.Name, s.Namespace)
		}
		req, errs := inject.Parse(&s.pod.ObjectMeta, &s.pod.Spec, s.Namespace, settings)
		if len(errs) > 0 || req == nil {
			t.Errorf("%s: request %+v, errors %v", s.Name, req, errs)
		}
	}
	if len(all) != 8 {
		t.Errorf("%d samples, want a Deployment, five Jobs and two CronJobs", len(all))
	}
}

// Five Jobs can show a cap of two only if they all share it.
func TestSampleJobsShareOneSemaphore(t *testing.T) {
	jobs := 0
	for _, object := range objects(t, "samples/capped-jobs.yaml") {
		job := object.(*batchv1.Job)
		jobs++
		a := job.Spec.Template.Annotations
		if a[inject.KeySemaphore] != "warehouse" || a[inject.KeyPermits] != "2" {
			t.Errorf("%s: annotations %v", job.Name, a)
		}
	}
	if jobs != 5 {
		t.Errorf("%d Jobs, want 5", jobs)
	}
}

// With a handoff, the strategy that is the default will do.
func TestSampleSingletonCanRollOut(t *testing.T) {
	deployment := only[*appsv1.Deployment](t, "samples/*.yaml")
	if got := deployment.Spec.Strategy.Type; got != "" {
		t.Errorf("strategy %s, want the default", got)
	}
	if handoff, ok := deployment.Spec.Template.Annotations[inject.KeyHandoff]; ok {
		t.Errorf("handoff %s, want the default", handoff)
	}
}

// The commands are what people copy, so any shell must be able to read them.
func TestSampleCommandsAreShell(t *testing.T) {
	for _, s := range samples(t) {
		command := s.pod.Spec.Containers[0].Command
		if strings.Join(command[:2], " ") != "sh -c" {
			t.Errorf("%s: command %q", s.Name, command)
			continue
		}
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", "-c", command[2]).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", s.Name, err, out)
		}
	}
}
