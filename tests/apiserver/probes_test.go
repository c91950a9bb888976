package apiserver

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Pods that share their node's network must not share a port, so the agent opens
// none: the scheduler would let no second one onto the node, or it would not start.
func TestCaseB50PodsOnTheHostsNetwork(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	pod := c.mustCreate(t, namespace, newPod(mutex, func(pod *corev1.Pod) { pod.Spec.HostNetwork = true }))
	a := agent(t, pod)
	if a.StartupProbe.Exec == nil || a.LivenessProbe.Exec == nil {
		t.Errorf("the probes are %v and %v, want exec", a.StartupProbe, a.LivenessProbe)
	}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if len(container.Ports) > 0 {
			t.Errorf("%s has ports %v, of which the node has only one each", container.Name, container.Ports)
		}
	}
	if i := slices.IndexFunc(a.Env, func(v corev1.EnvVar) bool { return v.Name == "HOLDFAST_LISTEN" }); i < 0 || a.Env[i].Value != "" {
		t.Error("the agent is not told to open no port")
	}
	if got, want := variable(&pod.Spec.Containers[0], "HOLDFAST_URL"), "unix:///var/run/holdfast/agent.sock"; got != want {
		t.Errorf("the app's HOLDFAST_URL is %q, want %q", got, want)
	}
}

// A mesh that a whole namespace is in adds its proxy after our webhook has seen
// the pod. The API server asks again, and the probes become such that work.
func TestAMeshThatInjectsLater(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	c.addMeddler(t, newMeddler(t, "istio-proxy"), namespace)
	pod, asked := c.createMeddled(t, namespace, "istio-proxy")
	if asked != 2 {
		t.Fatalf("the webhook was asked %d times, want 2: this test proves nothing", asked)
	}
	if a := agent(t, pod); a.StartupProbe.Exec == nil || a.LivenessProbe.Exec == nil {
		t.Errorf("the probes are %v and %v, want exec", a.StartupProbe, a.LivenessProbe)
	}
}
