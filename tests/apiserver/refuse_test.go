package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a user reads in the terminal, or in the events of a Job: it must name the
// annotation, what is in it, and what to do. Every bad value has its test in
// pkg/inject; these prove that the message gets through.
func TestBadAnnotationsAreRefused(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	cases := map[string]struct {
		annotations map[string]string
		want        []string // in the message
	}{
		"a lock's name in upper case": {
			map[string]string{"holdfast.dev/mutex": "Nightly ETL"},
			[]string{"metadata.annotations[holdfast.dev/mutex]", `"Nightly ETL"`, "a-z"},
		},
		"a key with a typing error": {
			map[string]string{"holdfast.dev/mutx": "nightly-etl"},
			[]string{"metadata.annotations[holdfast.dev/mutx]", "holdfast.dev/mutex"},
		},
		"a semaphore without permits": {
			map[string]string{"holdfast.dev/semaphore": "vendor-api"},
			[]string{"metadata.annotations[holdfast.dev/permits]", "Required"},
		},
		"a TTL without a unit": {
			map[string]string{"holdfast.dev/mutex": "nightly-etl", "holdfast.dev/ttl": "30"},
			[]string{"metadata.annotations[holdfast.dev/ttl]", `"30"`, "30s"},
		},
		"a scope that the platform does not allow": {
			map[string]string{"holdfast.dev/mutex": "nightly-etl", "holdfast.dev/scope": "cluster"},
			[]string{"metadata.annotations[holdfast.dev/scope]", "clusterScopeNamespaces"},
		},
		"several at once": {
			map[string]string{"holdfast.dev/mutex": "x", "holdfast.dev/permits": "2", "holdfast.dev/priority": "high"},
			[]string{"metadata.annotations[holdfast.dev/permits]", "metadata.annotations[holdfast.dev/priority]", `"high"`},
		},
		"what is not built yet": {
			map[string]string{"holdfast.dev/mutex": "x", "holdfast.dev/gate": "exec"},
			[]string{"metadata.annotations[holdfast.dev/gate]", "not supported yet"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.create(t, c.newNamespace(t, nil), newPod(tc.annotations))
			if !apierrors.IsInvalid(err) {
				t.Fatalf("the pod: %v; want it refused as invalid", err)
			}
			if missing := missing(err.Error(), tc.want); len(missing) > 0 {
				t.Errorf("%q does not say %q", err, missing)
			}
		})
	}
}

func TestPodsWithoutPlaceForAnAgentAreRefused(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	cases := map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"own container with the agent's name": {
			func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = agentName },
			[]string{"spec.containers[0].name", agentName, "rename"},
		},
		"own init container with our name": {
			func(pod *corev1.Pod) {
				pod.Spec.InitContainers = []corev1.Container{{Name: initName, Image: "registry.example/setup:1"}}
			},
			[]string{"spec.initContainers[0].name", initName, "rename"},
		},
		"own volume with our name": {
			func(pod *corev1.Pod) { pod.Spec.Volumes = []corev1.Volume{{Name: "holdfast-state"}} },
			[]string{"spec.volumes[0].name", "holdfast-state", "rename"},
		},
		"a Windows pod": {
			func(pod *corev1.Pod) { pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows} },
			[]string{"spec.os.name", "Linux"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.create(t, c.newNamespace(t, nil), newPod(mutex, tc.change))
			if !apierrors.IsInvalid(err) {
				t.Fatalf("the pod: %v; want it refused as invalid", err)
			}
			if missing := missing(err.Error(), tc.want); len(missing) > 0 {
				t.Errorf("%q does not say %q", err, missing)
			}
		})
	}
}

// Somebody has taken the annotations from a pod that had its agent, and may
// believe it to be protected still.
func TestAgentWithoutALockIsRefused(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	pod := c.mustCreate(t, namespace, newPod(mutex))
	_, err := c.create(t, namespace, newPod(nil, func(again *corev1.Pod) { again.Spec = *pod.Spec.DeepCopy() }))
	if !apierrors.IsInvalid(err) {
		t.Fatalf("the pod: %v; want it refused as invalid", err)
	}
	if missing := missing(err.Error(), []string{"holdfast.dev/mutex", agentName}); len(missing) > 0 {
		t.Errorf("%q does not say %q", err, missing)
	}
}

// A refused pod leaves nothing behind.
func TestRefusedPodIsNotCreated(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	if _, err := c.create(t, namespace, newPod(map[string]string{"holdfast.dev/mutex": ""})); err == nil {
		t.Error("a lock without a name was let in")
	}
	pods, err := c.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) > 0 {
		t.Errorf("%d pods are there", len(pods.Items))
	}
}
