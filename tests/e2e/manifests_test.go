//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// render is what `kubectl apply -k` would send.
func render(dir string) ([]*unstructured.Unstructured, error) {
	cmd := exec.Command("kubectl", "kustomize", dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, &stderr)
	}
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), len(out))
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

// trust fills in the CA with which the API server checks the webhook.
func trust(manifests []*unstructured.Unstructured, ca []byte) error {
	for _, m := range manifests {
		webhooks, found, err := unstructured.NestedSlice(m.Object, "webhooks")
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		for _, webhook := range webhooks {
			err := unstructured.SetNestedField(webhook.(map[string]any), base64.StdEncoding.EncodeToString(ca), "clientConfig", "caBundle")
			if err != nil {
				return err
			}
		}
		if err := unstructured.SetNestedSlice(m.Object, webhooks, "webhooks"); err != nil {
			return err
		}
	}
	return nil
}

// apply is `kubectl apply --server-side`, but that a field which the API server
// does not know is an error.
func apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	strict := client.WithFieldValidation(c, "Strict")
	for _, object := range objects {
		config := client.ApplyConfigurationFromUnstructured(object)
		if err := strict.Apply(ctx, config, client.FieldOwner("e2e"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %q: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
