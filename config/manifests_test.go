// Package config tests the manifests beside it.
package config

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/holdfast-dev/holdfast/pkg/inject"
)

// objects decodes the documents of files strictly: a field that Kubernetes does
// not know, or that is there twice, fails the test.
func objects(t *testing.T, pattern string) []runtime.Object {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	decoder := serializer.NewCodecFactory(clientscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var all []runtime.Object
	for _, file := range files {
		if name := filepath.Base(file); name == "kustomization.yaml" || name == "settings.yaml" {
			continue // no objects of Kubernetes
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			object, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, object)
		}
	}
	return all
}

// only is the one object of its type.
func only[T runtime.Object](t *testing.T, pattern string) T {
	t.Helper()
	var found []T
	for _, object := range objects(t, pattern) {
		if o, ok := object.(T); ok {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T in %s, want 1", len(found), *new(T), pattern)
	}
	return found[0]
}

// The settings file shows the defaults, so it must be a good one and tell the
// truth.
func TestSettingsShowTheDefaults(t *testing.T) {
	shown, err := inject.LoadSettings("settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := inject.ParseSettings([]byte("apiVersion: " + inject.SettingsAPIVersion + "\nkind: " + inject.SettingsKind + "\nimage: " + shown.Image))
	if err != nil {
		t.Fatal(err)
	}
	shown.ImagePullSecrets, shown.ClusterScopeNamespaces = nil, nil // empty there, and so none
	if diff := cmp.Diff(defaults, shown); diff != "" {
		t.Errorf("settings.yaml (-defaults +shown):\n%s", diff)
	}
}

// Cases istio#21147 and istio#3716: the webhook that is down blocks what it needs
// itself, or lets pods run without what they need.
func TestCaseB38WebhookBlocksNothingElse(t *testing.T) {
	webhook := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, "*.yaml").Webhooks[0]
	service := only[*corev1.Service](t, "*.yaml")

	if got := *webhook.FailurePolicy; got != admissionregistrationv1.Fail {
		t.Errorf("failure policy %s: an annotated pod would run without its lock", got)
	}
	if got := *webhook.TimeoutSeconds; got != 5 {
		t.Errorf("time-out %d s, want 5", got)
	}
	if got := *webhook.SideEffects; got != admissionregistrationv1.SideEffectClassNone {
		t.Errorf("side effects %s: dry runs would be refused", got)
	}
	if got := *webhook.ReinvocationPolicy; got != admissionregistrationv1.IfNeededReinvocationPolicy {
		t.Errorf("reinvocation %s: containers that others add later would not be seen", got)
	}
	out := webhook.NamespaceSelector.MatchExpressions[0]
	if diff := cmp.Diff([]string{"kube-system", service.Namespace}, out.Values); out.Key != corev1.LabelMetadataName || out.Operator != "NotIn" || diff != "" {
		t.Errorf("namespaces that are out: %s %s (-want +got):\n%s", out.Key, out.Operator, diff)
	}
	if webhook.ObjectSelector != nil {
		t.Error("an object selector: pods could opt out by a label")
	}
}

// Case argo-cd#1487: GitOps and the installer fight over the CA.
func TestCaseB42NoCAInTheManifest(t *testing.T) {
	webhook := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, "*.yaml").Webhooks[0]
	if len(webhook.ClientConfig.CABundle) > 0 {
		t.Error("there is a caBundle")
	}
}

// What one file names, the other has.
func TestManifestsFitTogether(t *testing.T) {
	client := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, "*.yaml").Webhooks[0].ClientConfig.Service
	service := only[*corev1.Service](t, "*.yaml")
	deployment := only[*appsv1.Deployment](t, "*.yaml")
	account := only[*corev1.ServiceAccount](t, "*.yaml")
	namespace := only[*corev1.Namespace](t, "*.yaml")
	pod := deployment.Spec.Template

	if client.Name != service.Name || client.Namespace != service.Namespace || *client.Port != service.Spec.Ports[0].Port {
		t.Errorf("the webhook is at %+v, the Service is %s/%s", client, service.Namespace, service.Name)
	}
	if *client.Path != inject.PodsPath {
		t.Errorf("path %s, want %s", *client.Path, inject.PodsPath)
	}
	if diff := cmp.Diff(service.Spec.Selector, pod.Labels); diff != "" {
		t.Errorf("labels of the pods (-selected +got):\n%s", diff)
	}
	if port := service.Spec.Ports[0].TargetPort.StrVal; port != pod.Spec.Containers[0].Ports[0].Name {
		t.Errorf("the Service sends to port %s, which is not the first of the pods", port)
	}
	if pod.Spec.ServiceAccountName != account.Name {
		t.Errorf("service account %s, want %s", pod.Spec.ServiceAccountName, account.Name)
	}
	for _, in := range []string{service.Namespace, deployment.Namespace, account.Namespace} {
		if in != namespace.Name {
			t.Errorf("an object is in namespace %s, want %s", in, namespace.Name)
		}
	}
}

func TestWebhookMeetsRestricted(t *testing.T) {
	pod := only[*appsv1.Deployment](t, "*.yaml").Spec.Template
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
	if !result.Allowed {
		t.Error(result.ForbiddenDetail())
	}
}
