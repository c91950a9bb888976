package inject

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

const testNamespace = "jobs"

// testSettings is what the tests run with: namespace "jobs" may use the scope
// cluster.
func testSettings(t testing.TB) *Settings {
	t.Helper()
	s, err := ParseSettings([]byte(`
apiVersion: config.holdfast.dev/v1alpha1
kind: WebhookSettings
image: registry.example/holdfast-agent:v1
imagePullPolicy: IfNotPresent
imagePullSecrets: [registry]
clusterScopeNamespaces: [jobs]
`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testPod has one container, app, and the annotations given as pairs.
func testPod(pairs ...string) *corev1.Pod {
	annotations := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		annotations[pairs[i]] = pairs[i+1]
	}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "etl", Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "busybox"}}},
	}
}

// testOwner is whose every pod of a ReplicaSet is.
var testOwner = &Owner{
	ReplicaSet: "6f1b4b0e-9c9f-4b43-8d53-0d8c8d0f4c11", Workload: "c0a8e6a4-3f6e-4a53-9a3e-52b1f0c3f6d7", Revision: 3,
}

// lookUpTestOwner is an [OwnerLookup].
func lookUpTestOwner(context.Context, string, metav1.OwnerReference) (*Owner, error) {
	return testOwner, nil
}

// mustInject parses and mutates a copy of pod.
func mustInject(t testing.TB, pod *corev1.Pod, settings *Settings) *corev1.Pod {
	t.Helper()
	req, errs := Parse(&pod.ObjectMeta, &pod.Spec, testNamespace, settings)
	if len(errs) > 0 {
		t.Fatalf("denied: %v", errs.ToAggregate())
	}
	if req == nil {
		t.Fatal("nothing was asked for")
	}
	var owner *Owner
	if req.needsOwner(&pod.ObjectMeta) != nil {
		owner = testOwner
	}
	if errs := req.belongTo(owner); len(errs) > 0 {
		t.Fatalf("denied: %v", errs.ToAggregate())
	}
	out := pod.DeepCopy()
	Mutate(out, req, settings)
	return out
}

func containerNamed(t testing.TB, containers []corev1.Container, name string) *corev1.Container {
	t.Helper()
	for i := range containers {
		if containers[i].Name == name {
			return &containers[i]
		}
	}
	t.Fatalf("no container %q", name)
	return nil
}

// told reads an injected agent's variables as the agent does. The downward API
// is stood in for by fixed values.
func told(t testing.TB, pod *corev1.Pod) agentenv.Config {
	t.Helper()
	agent := containerNamed(t, pod.Spec.InitContainers, AgentContainer)
	config, err := agentenv.Parse(func(name string) (string, bool) {
		for _, e := range agent.Env {
			if e.Name == name && e.ValueFrom != nil {
				return e.ValueFrom.FieldRef.FieldPath, true
			}
			if e.Name == name {
				return e.Value, true
			}
		}
		return "", false
	})
	if err != nil {
		t.Fatalf("the agent refuses its variables: %v", err)
	}
	return config
}
