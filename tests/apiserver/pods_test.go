package apiserver

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	enabledLabel = "holdfast.dev/enabled"
	agentName    = "holdfast-agent"
	initName     = "holdfast-init"
	gateName     = "holdfast-gate"
)

var mutex = map[string]string{"holdfast.dev/mutex": "nightly-etl"}

// newNamespace is one in which Holdfast is enabled, with further labels.
func (c *cluster) newNamespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	all := map[string]string{enabledLabel: "true"}
	for k, v := range labels {
		all[k] = v
	}
	return c.newPlainNamespace(t, all)
}

// newPlainNamespace has just these labels. It is not deleted: without a
// controller it would stay "terminating" all the same.
func (c *cluster) newPlainNamespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: labels}}
	ns, err := c.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// create is a POST of the pod, and what the API server made of it.
func (c *cluster) create(t *testing.T, namespace string, pod *corev1.Pod) (*corev1.Pod, error) {
	t.Helper()
	return c.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
}

// mustCreate fails the test where the pod is refused.
func (c *cluster) mustCreate(t *testing.T, namespace string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := c.create(t, namespace, pod)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// newPod is a small app with these annotations, changed as told.
func newPod(annotations map[string]string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "app-", Annotations: annotations},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app", Image: "registry.example/app:1"}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// initContainer is the pod's container of that name, nil if there is none.
func initContainer(pod *corev1.Pod, name string) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &pod.Spec.InitContainers[i]
}

func injected(pod *corev1.Pod) bool { return initContainer(pod, agentName) != nil }

// agent is the injected container; without one the test has failed.
func agent(t *testing.T, pod *corev1.Pod) *corev1.Container {
	t.Helper()
	a := initContainer(pod, agentName)
	if a == nil {
		t.Fatalf("no %s among the init containers %v", agentName, initNames(pod))
	}
	return a
}

func initNames(pod *corev1.Pod) []string {
	var names []string
	for _, c := range pod.Spec.InitContainers {
		names = append(names, c.Name)
	}
	return names
}

func variable(c *corev1.Container, name string) string {
	for _, v := range c.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// missing is what of want the text does not contain.
func missing(text string, want []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(s string) bool { return strings.Contains(text, s) })
}
