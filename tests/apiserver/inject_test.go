package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAnnotatedPodGetsItsAgent(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	pod := c.mustCreate(t, namespace, newPod(mutex))

	if diff := cmp.Diff([]string{initName, agentName, gateName}, initNames(pod)); diff != "" {
		t.Errorf("init containers (-want +got)\n%s", diff)
	}
	if got := pod.Labels["holdfast.dev/injected"]; got != "true" {
		t.Errorf("label holdfast.dev/injected is %q", got)
	}
	a := agent(t, pod)
	if got, want := variable(a, "HOLDFAST_RESOURCE"), namespace+"/nightly-etl"; got != want {
		t.Errorf("the agent's resource is %q, want %q", got, want)
	}
	if a.RestartPolicy == nil || *a.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Errorf("the agent is no native sidecar: restartPolicy %v", a.RestartPolicy)
	}
}

// What stops the app on a loss is a rule that an API server may drop: older ones
// do not know it.
func TestRestartRuleSurvives(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	pod := c.mustCreate(t, c.newNamespace(t, nil), newPod(mutex))
	want := []corev1.ContainerRestartRule{{
		Action: corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
			Operator: corev1.ContainerRestartRuleOnExitCodesOpNotIn,
			Values:   []int32{0},
		},
	}}
	if diff := cmp.Diff(want, agent(t, pod).RestartPolicyRules); diff != "" {
		t.Errorf("restart rules (-want +got)\n%s", diff)
	}
}

// Controllers send no name and no namespace in the pod, only in the request. For
// those of ReplicaSets see handoff_test.go.
func TestPodsOfControllersAreInjected(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	cases := map[string]struct {
		owner         metav1.OwnerReference
		restartPolicy corev1.RestartPolicy
	}{
		"of a StatefulSet":                   {owner("apps/v1", "StatefulSet"), corev1.RestartPolicyAlways},
		"of a DaemonSet":                     {owner("apps/v1", "DaemonSet"), corev1.RestartPolicyAlways},
		"of a Job that never restarts":       {owner("batch/v1", "Job"), corev1.RestartPolicyNever},
		"of a Job that restarts on failure":  {owner("batch/v1", "Job"), corev1.RestartPolicyOnFailure},
		"of a controller that nobody knows":  {owner("example.org/v1", "Thing"), corev1.RestartPolicyAlways},
		"of a ReplicationController of 2015": {owner("v1", "ReplicationController"), corev1.RestartPolicyAlways},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := c.newNamespace(t, nil)
			pod := c.mustCreate(t, namespace, newPod(mutex, func(pod *corev1.Pod) {
				pod.GenerateName = "worker-5d4f8-"
				pod.OwnerReferences = []metav1.OwnerReference{tc.owner}
				pod.Spec.RestartPolicy = tc.restartPolicy
			}))
			if got, want := variable(agent(t, pod), "HOLDFAST_RESOURCE"), namespace+"/nightly-etl"; got != want {
				t.Errorf("the agent's resource is %q, want %q", got, want)
			}
			if pod.Spec.RestartPolicy != tc.restartPolicy {
				t.Errorf("restartPolicy is %s, want %s", pod.Spec.RestartPolicy, tc.restartPolicy)
			}
		})
	}
}

// What the app team wrote stays as it is: the same pod without annotations
// differs in nothing but what Holdfast adds.
func TestCaseB33RestOfThePodIsUntouched(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	rich := func(pod *corev1.Pod) {
		pod.Name = "app" // the same in both, or defaults named after it differ
		pod.GenerateName = ""
		pod.Labels = map[string]string{"app": "etl"}
		fillSpec(&pod.Spec)
	}
	dryRun := func(pod *corev1.Pod) *corev1.Pod {
		t.Helper()
		options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
		created, err := c.CoreV1().Pods(namespace).Create(t.Context(), pod, options)
		if err != nil {
			t.Fatal(err)
		}
		return created
	}
	with, without := dryRun(newPod(mutex, rich)), dryRun(newPod(nil, rich))
	agent(t, with)
	withoutOurs(with)
	if diff := cmp.Diff(without.Spec, with.Spec); diff != "" {
		t.Errorf("what the user wrote (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(without.Labels, with.Labels); diff != "" {
		t.Errorf("labels (-want +got)\n%s", diff)
	}
}

func owner(apiVersion, kind string) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: "worker", UID: "0b5c3a52-7a0e-4d0e-9f6a-5d7c1c1f6c11",
		Controller: &yes, BlockOwnerDeletion: &yes,
	}
}
