package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// admission asks the webhook about new pods, as an API server does.
type admission struct {
	url    string // of the mutating webhook
	client *http.Client
}

// admit sends p, which is about to be created in namespace, and returns it as
// the webhook wants it. What the webhook denies is an error with its message.
func (a admission) admit(ctx context.Context, p *corev1.Pod, namespace string) (*corev1.Pod, error) {
	before, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	review := newReview(before, namespace)
	response, err := a.post(ctx, review)
	if err != nil {
		return nil, fmt.Errorf("admission webhook %s: %w", a.url, err)
	}
	if response.UID != review.Request.UID {
		return nil, fmt.Errorf("admission webhook %s: answered review %q, asked was %q", a.url, response.UID, review.Request.UID)
	}
	if !response.Allowed {
		return nil, fmt.Errorf("the webhook denied the pod: %s", denial(response))
	}
	return applyPatch(before, response)
}

func denial(response *admissionv1.AdmissionResponse) string {
	if response.Result == nil {
		return "no reason given"
	}
	return response.Result.Message
}

func newReview(object []byte, namespace string) admissionv1.AdmissionReview {
	dryRun := false
	return admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       uuid.NewUUID(),
			Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: namespace,
			Operation: admissionv1.Create,
			DryRun:    &dryRun,
			Object:    runtime.RawExtension{Raw: object},
		},
	}
}

func (a admission) post(ctx context.Context, review admissionv1.AdmissionReview) (*admissionv1.AdmissionResponse, error) {
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reply.Body.Close() }()
	answer, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, err
	}
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", reply.Status, bytes.TrimSpace(answer))
	}
	var answered admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &answered); err != nil {
		return nil, err
	}
	if answered.Response == nil {
		return nil, errors.New("the answer has no response in it")
	}
	return answered.Response, nil
}

// applyPatch does with the response what an API server does. The result is
// decoded strictly: a field that does not exist would be dropped by a cluster.
func applyPatch(before []byte, response *admissionv1.AdmissionResponse) (*corev1.Pod, error) {
	after := before
	if len(response.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(response.Patch)
		if err != nil {
			return nil, fmt.Errorf("read the webhook's patch: %w", err)
		}
		if after, err = patch.Apply(before); err != nil {
			return nil, fmt.Errorf("apply the webhook's patch: %w", err)
		}
	}
	var p corev1.Pod
	decoder := json.NewDecoder(bytes.NewReader(after))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		return nil, fmt.Errorf("read the patched pod: %w", err)
	}
	return &p, nil
}
