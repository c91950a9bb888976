package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// PodSecurity judges after the webhooks, so it sees the injected containers.
func TestCaseB46RestrictedNamespace(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	cases := map[string]map[string]string{
		"a mutex":     mutex,
		"a semaphore": {"holdfast.dev/semaphore": "vendor-api", "holdfast.dev/permits": "5"},
		"no gate":     {"holdfast.dev/mutex": "nightly-etl", "holdfast.dev/gate": "none"},
	}
	for name, annotations := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent(t, c.mustCreate(t, namespace, newPod(annotations, compliant)))
		})
	}
	t.Run("the app itself is not compliant", func(t *testing.T) {
		t.Parallel()
		if _, err := c.create(t, namespace, newPod(mutex)); !apierrors.IsForbidden(err) {
			t.Errorf("the pod: %v; want it refused by PodSecurity, or this test proves nothing", err)
		}
	})
}

// The pod's own identity is not the agent's: root, or any group, or none.
func TestPodsOfAnyIdentity(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	cases := map[string]*corev1.PodSecurityContext{
		"root":                {RunAsUser: new(int64(0)), RunAsGroup: new(int64(0))},
		"root, said aloud":    {RunAsUser: new(int64(0)), RunAsNonRoot: new(false)},
		"another uid, groups": {RunAsUser: new(int64(1000)), FSGroup: new(int64(2000)), SupplementalGroups: []int64{3000}},
		"nothing said":        nil,
	}
	for name, identity := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := c.mustCreate(t, c.newNamespace(t, nil), newPod(mutex, func(pod *corev1.Pod) { pod.Spec.SecurityContext = identity }))
			for _, name := range []string{initName, agentName} {
				sc := initContainer(pod, name).SecurityContext
				if sc.RunAsNonRoot == nil || !*sc.RunAsNonRoot || sc.RunAsUser == nil || *sc.RunAsUser == 0 {
					t.Errorf("%s: runAsNonRoot %v, runAsUser %v; the kubelet would not start it, or as root", name, sc.RunAsNonRoot, sc.RunAsUser)
				}
			}
		})
	}
}
