package apiserver

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const ownNamespace = "holdfast-system"

func TestCaseB40OnlyAnnotatedPodsReachTheWebhook(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	cases := map[string]struct {
		annotations  map[string]string
		enabled      bool
		wantRequests int
	}{
		"a lock, namespace enabled":                  {mutex, true, 1},
		"a misspelled key, namespace enabled":        {map[string]string{"holdfast.dev/mutexx": "x"}, true, 1}, // to be refused
		"no annotations":                             {nil, true, 0},
		"annotations of others":                      {map[string]string{"example.org/mutex": "x", "notholdfast.dev/mutex": "x"}, true, 0},
		"a lock, in a namespace that is not enabled": {mutex, false, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := c.newPlainNamespace(t, nil)
			if tc.enabled {
				namespace = c.newNamespace(t, nil)
			}
			_, _ = c.create(t, namespace, newPod(tc.annotations)) // whether it is let in is another test's
			if got := c.front.countOf(namespace); got != tc.wantRequests {
				t.Errorf("%d requests to the webhook, want %d", got, tc.wantRequests)
			}
		})
	}
}

func TestUpdatesOfPodsDoNotReachTheWebhook(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	pod := c.mustCreate(t, namespace, newPod(mutex))
	before := c.front.countOf(namespace)

	pod.Labels["team"] = "data"
	if _, err := c.CoreV1().Pods(namespace).Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := c.front.countOf(namespace); before != 1 || after != before {
		t.Errorf("%d requests to the webhook for the creation, %d after the update; want 1 and 1", before, after)
	}
}

// A webhook that is down must neither let a pod run unprotected nor keep
// anything else from starting.
func TestCaseB38WebhookDown(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	c.front.playDead(t, namespace)

	c.mustCreate(t, namespace, newPod(nil))
	_, err := c.create(t, namespace, newPod(mutex))
	if err == nil || !strings.Contains(err.Error(), "failed calling webhook") || !strings.Contains(err.Error(), "holdfast.dev") {
		t.Errorf("a pod with a lock while the webhook is down: %v; want an error that names the webhook", err)
	}
}

// The webhook's own namespace and the cluster's must start without it, whatever
// labels they are given.
func TestCaseB38OwnNamespaceNeedsNoWebhook(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	canary := c.newPlainNamespace(t, nil)
	for _, namespace := range []string{metav1.NamespaceSystem, ownNamespace, canary} {
		c.enable(t, namespace)
	}
	// The API server learns of labels in their order, so now it knows of all.
	eventually(t, func() bool { return injected(c.mustCreate(t, canary, newPod(mutex))) })

	for _, namespace := range []string{metav1.NamespaceSystem, ownNamespace} {
		if injected(c.mustCreate(t, namespace, newPod(mutex, compliant))) || c.front.countOf(namespace) > 0 {
			t.Errorf("a pod in %s reached the webhook", namespace)
		}
	}
}

// The webhook's pods are let into their own namespace, which is a restricted one.
func TestWebhookCanStart(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	deployment, err := find(c.manifests, "Deployment")
	if err != nil {
		t.Fatal(err)
	}
	c.mustCreate(t, ownNamespace, podFrom(t, deployment, podTemplates["Deployment"]))
}

func (c *cluster) enable(t *testing.T, namespace string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, enabledLabel)
	if _, err := c.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// compliant makes the app meet PodSecurity "restricted".
func compliant(pod *corev1.Pod) {
	yes, no := true, false
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			RunAsNonRoot:             &yes,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
	}
}
