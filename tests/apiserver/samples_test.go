package apiserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podTemplates is where the kinds of the samples keep the template of their pods.
var podTemplates = map[string][]string{
	"Deployment": {"spec", "template"},
	"Job":        {"spec", "template"},
	"CronJob":    {"spec", "jobTemplate", "spec", "template"},
}

// What people copy must work: the API server takes each sample without a
// complaint about a field, and its pods get their agent.
func TestSamplesAreAccepted(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	samples := readSamples(t)
	namespace := c.newNamespace(t, nil)
	seen := map[string]bool{}
	for _, sample := range samples {
		seen[sample.GetKind()] = true
		t.Run(sample.GetKind()+" "+sample.GetName(), func(t *testing.T) {
			c.accepts(t, namespace, sample)
			if path, ok := podTemplates[sample.GetKind()]; ok {
				pod := podFrom(t, sample, path)
				agent(t, c.mustCreate(t, namespace, pod))
			}
		})
	}
	for kind := range podTemplates {
		if !seen[kind] {
			t.Errorf("no sample is a %s", kind)
		}
	}
}

// readSamples is what `kubectl apply -R -f config/samples` applies.
func readSamples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var files []string
	for _, pattern := range []string{"config/samples/*.yaml", "config/samples/*/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	var samples []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decode(text)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		samples = append(samples, objects...)
	}
	return samples
}

// accepts is `kubectl create --dry-run=server`.
func (c *cluster) accepts(t *testing.T, namespace string, object *unstructured.Unstructured) {
	t.Helper()
	object = object.DeepCopy()
	if object.GetKind() != "Namespace" {
		object.SetNamespace(namespace)
	}
	strict := client.WithFieldValidation(c.objects, "Strict")
	if err := strict.Create(t.Context(), object, client.DryRunAll); err != nil {
		t.Error(err)
	}
}

// podFrom is a pod as a controller makes it of a template.
func podFrom(t *testing.T, object *unstructured.Unstructured, path []string) *corev1.Pod {
	t.Helper()
	template, found, err := unstructured.NestedMap(object.Object, path...)
	if err != nil || !found {
		t.Fatalf("no pod template: %v", err)
	}
	text, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(text, pod); err != nil {
		t.Fatal(err)
	}
	pod.GenerateName = object.GetName() + "-"
	return pod
}
