package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const repository = "../.."

// render is `kustomize build`, of the version that hack/tools pins.
func render(dir string) ([]*unstructured.Unstructured, error) {
	dir, err := filepath.Abs(filepath.Join(repository, dir))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "-C", filepath.Join(repository, "hack/tools"), "tool", "kustomize", "build", dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, &stderr)
	}
	return decode(out)
}

// decode reads all documents of a YAML stream.
func decode(stream []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), len(stream))
	for {
		object := &unstructured.Unstructured{}
		switch err := documents.Decode(object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case object.Object != nil: // else a document of comments
			objects = append(objects, object)
		}
	}
}

// apply creates the objects as `kubectl apply --server-side` would: a field that
// the API server does not know is an error.
func apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	strict := client.WithFieldValidation(c, "Strict")
	for _, object := range objects {
		config := client.ApplyConfigurationFromUnstructured(object)
		if err := strict.Apply(ctx, config, client.FieldOwner("test"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %q: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// Who applies the manifests again, as GitOps tools do all the time, must not
// take away the CA that was filled in.
func TestCaseB42ManifestsLeaveTheCABundleAlone(t *testing.T) {
	t.Parallel()
	manifests, err := render("config")
	if err != nil {
		t.Fatal(err)
	}
	config, err := find(manifests, "MutatingWebhookConfiguration")
	if err != nil {
		t.Fatal(err)
	}
	webhooks, _, err := unstructured.NestedSlice(config.Object, "webhooks")
	if err != nil {
		t.Fatal(err)
	}
	for _, webhook := range webhooks {
		if bundle, found, _ := unstructured.NestedString(webhook.(map[string]any), "clientConfig", "caBundle"); found {
			t.Errorf("caBundle is %q, want none", bundle)
		}
	}
}
