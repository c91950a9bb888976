//go:build e2e

package e2e

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	agentName  = "holdfast-agent"
	gateName   = "holdfast-gate"
	agentImage = "holdfast.local/agent:e2e"
	appImage   = "holdfast.local/app:e2e"
)

// mutex is the annotations of a pod under a mutex, with further keys and values.
func mutex(name string, more ...string) map[string]string {
	return annotations(append([]string{"mutex", name, "ttl", "20s"}, more...)...)
}

// annotations lists our keys without their prefix, each followed by its value.
// A later value wins.
func annotations(keys ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(keys); i += 2 {
		m["holdfast.dev/"+keys[i]] = keys[i+1]
	}
	return m
}

// newPod has one app. It needs the volume of [trial.withJournal], unless it is bare.
func newPod(name string, annotations map[string]string, changes ...func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			Containers:                   []corev1.Container{app("app")},
		},
	}
	for _, change := range changes {
		change(&pod.Spec)
	}
	return pod
}

// app is a container whose process is named like it in the journals.
func app(name string, flags ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: appImage, ImagePullPolicy: corev1.PullNever,
		Command:      append([]string{"/bin/app", "-name", name}, flags...),
		VolumeMounts: []corev1.VolumeMount{{Name: "journal", MountPath: "/journal"}},
	}
}

// apps replaces the containers, of any number of pods.
func apps(containers ...corev1.Container) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Containers = nil
		for _, c := range containers {
			spec.Containers = append(spec.Containers, *c.DeepCopy())
		}
	}
}

func grace(seconds int64) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) { spec.TerminationGracePeriodSeconds = &seconds }
}

// bare leaves an app that is never started: it could keep no journal.
func bare(spec *corev1.PodSpec) { spec.Containers[0].VolumeMounts = nil }

func never(spec *corev1.PodSpec) { spec.RestartPolicy = corev1.RestartPolicyNever }

// withJournal is where the apps' journals are: a folder of the machine, unless
// the pod has a volume for them.
func (s *trial) withJournal(spec *corev1.PodSpec) {
	if slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "journal" }) {
		return
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "journal", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: s.journal},
	}})
}

// pod creates one.
func (s *trial) pod(name string, annotations map[string]string, changes ...func(*corev1.PodSpec)) *corev1.Pod {
	s.t.Helper()
	pod := newPod(name, annotations, append(changes, s.withJournal)...)
	pod, err := shared.CoreV1().Pods(s.namespace).Create(s.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return pod
}

// deployment creates one of one replica, with the strategy that is the default.
func (s *trial) deployment(name string, annotations map[string]string, changes ...func(*corev1.PodSpec)) {
	s.t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	d.Spec.Template = s.template(name, annotations, changes...)
	if _, err := shared.AppsV1().Deployments(s.namespace).Create(s.t.Context(), d, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// job creates one in any of the trial's namespaces.
func (s *trial) job(namespace, name string, annotations map[string]string, changes ...func(*corev1.PodSpec)) {
	s.t.Helper()
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}}
	j.Spec.Template = s.template(name, annotations, append([]func(*corev1.PodSpec){never}, changes...)...)
	if _, err := shared.BatchV1().Jobs(namespace).Create(s.t.Context(), j, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *trial) template(name string, annotations map[string]string, changes ...func(*corev1.PodSpec)) corev1.PodTemplateSpec {
	pod := newPod("", annotations, append(changes, s.withJournal)...)
	pod.Labels = map[string]string{"app": name}
	return corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
}

// podsOf lists the pods of a Deployment or Job.
func (s *trial) podsOf(name string) []corev1.Pod {
	s.t.Helper()
	pods, err := shared.CoreV1().Pods(s.namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		s.t.Fatal(err)
	}
	return pods.Items
}

// get reads a pod again.
func (s *trial) get(name string) *corev1.Pod {
	s.t.Helper()
	pod, err := shared.CoreV1().Pods(s.namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return pod
}

// delete asks for a pod's end, with a grace period of its own unless it is negative.
func (s *trial) delete(name string, seconds int64) {
	s.t.Helper()
	options := metav1.DeleteOptions{}
	if seconds >= 0 {
		options.GracePeriodSeconds = &seconds
	}
	if err := shared.CoreV1().Pods(s.namespace).Delete(context.Background(), name, options); err != nil {
		s.t.Fatal(err)
	}
}

// status is the state of one container, of whatever kind it is.
func status(pod *corev1.Pod, container string) corev1.ContainerStatus {
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if c.Name == container {
			return c
		}
	}
	return corev1.ContainerStatus{}
}
