package inject

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// apiServer stands in for the one that would call: it speaks HTTPS to the
// handler and knows what to make of the answers.
type apiServer struct {
	*httptest.Server
	metrics *prometheus.Registry
}

func newAPIServer(t *testing.T) apiServer {
	t.Helper()
	return newAPIServerWith(t, lookUpTestOwner)
}

func newAPIServerWith(t *testing.T, owners OwnerLookup) apiServer {
	t.Helper()
	registry := prometheus.NewRegistry()
	handler, err := NewHandler(testSettings(t), owners, NewMetrics(registry), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return apiServer{server, registry}
}

// send posts a body as it is.
func (s apiServer) send(t *testing.T, contentType string, body []byte) *http.Response {
	t.Helper()
	response, err := s.Client().Post(s.URL+PodsPath, contentType, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// review posts a review and answers with the decision.
func (s apiServer) review(t *testing.T, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	response := s.send(t, "application/json", body)
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &review); err != nil {
		t.Fatalf("%s: %v: %s", response.Status, err, text)
	}
	if review.Response == nil {
		t.Fatalf("no response in %s", text)
	}
	return review.Response
}

// reviewOf asks about an object, by default about the creation of a pod.
func reviewOf(t *testing.T, object string, change ...func(*admissionv1.AdmissionRequest)) []byte {
	t.Helper()
	request := &admissionv1.AdmissionRequest{
		UID:       "1-2-3",
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Namespace: testNamespace,
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: []byte(object)},
	}
	for _, f := range change {
		f(request)
	}
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  request,
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestGoldenOverHTTPS sends the pods of TestGolden as an API server would, and
// applies the patch that comes back.
func TestGoldenOverHTTPS(t *testing.T) {
	server := newAPIServer(t)
	for _, file := range podFiles(t) {
		t.Run(file, func(t *testing.T) {
			raw, err := json.Marshal(readPod(t, file))
			if err != nil {
				t.Fatal(err)
			}
			response := server.review(t, reviewOf(t, string(raw)))
			if !response.Allowed || response.UID != "1-2-3" {
				t.Fatalf("not allowed, or not the answer to the question: %+v", response)
			}
			var got corev1.Pod
			if err := json.Unmarshal(patched(t, raw, response.Patch), &got); err != nil {
				t.Fatal(err)
			}
			want := readPod(t, strings.TrimSuffix(file, ".yaml")+goldenSuffix)
			if diff := cmp.Diff(asYAML(t, want), asYAML(t, &got)); diff != "" {
				t.Errorf("patched pod (-want +got):\n%s", diff)
			}
		})
	}
}

func patched(t *testing.T, raw, patch []byte) []byte {
	t.Helper()
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	out, err := decoded.Apply(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Cases azure-workload-identity#1312 and berglas#264, as seen by the API server:
// the patch touches no field that it does not know.
func TestCaseB33PatchLeavesUnknownFields(t *testing.T) {
	const raw = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"holdfast.dev/mutex":"m"}},
		"spec":{"initContainers":[{"name":"i","new":1}],"containers":[{"name":"c","new":{"x":[2]},"resources":{}}]}}`
	response := newAPIServer(t).review(t, reviewOf(t, raw))
	var got struct {
		Spec struct{ InitContainers, Containers []map[string]any }
	}
	if err := json.Unmarshal(patched(t, []byte(raw), response.Patch), &got); err != nil {
		t.Fatal(err)
	}
	want := []any{nil, nil, nil, 1.0, map[string]any{"x": []any{2.0}}}
	var found []any
	for _, c := range append(got.Spec.InitContainers, got.Spec.Containers...) {
		found = append(found, c["new"])
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("unknown fields (-want +got):\n%s", diff)
	}
}

func TestDenialSaysEverything(t *testing.T) {
	const raw = `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"etl-","annotations":{"holdfast.dev/mutex":"Nightly","holdfast.dev/ttl":"30"}},"spec":{"containers":[{"name":"c"}]}}`
	response := newAPIServer(t).review(t, reviewOf(t, raw))
	if response.Allowed || response.UID != "1-2-3" || len(response.Patch) > 0 {
		t.Fatalf("not plainly denied: %+v", response)
	}
	status := response.Result
	if status.Code != http.StatusUnprocessableEntity || status.Reason != metav1.StatusReasonInvalid {
		t.Errorf("code %d, reason %s; want 422 Invalid", status.Code, status.Reason)
	}
	want := `Pod "etl-" is invalid: [` +
		`metadata.annotations[holdfast.dev/mutex]: Invalid value: "Nightly": use only a-z, 0-9, ".", "_", "-", "/", with a letter or digit at both ends, ` +
		`metadata.annotations[holdfast.dev/ttl]: Invalid value: "30": lacks its unit: write "30s"]`
	if status.Message != want {
		t.Errorf("message\n%s\nwant\n%s", status.Message, want)
	}
	var fields []string
	for _, cause := range status.Details.Causes {
		fields = append(fields, cause.Field)
	}
	if diff := cmp.Diff([]string{"metadata.annotations[holdfast.dev/mutex]", "metadata.annotations[holdfast.dev/ttl]"}, fields); diff != "" {
		t.Errorf("fields of the causes (-want +got):\n%s", diff)
	}
}

// Namespaces are taken from the request: a controller's pod does not name its
// own, and one that names another must not get that one's lock.
func TestNamespaceIsTheRequests(t *testing.T) {
	const raw = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"bank","annotations":{"holdfast.dev/mutex":"m"}},"spec":{"containers":[{"name":"c"}]}}`
	response := newAPIServer(t).review(t, reviewOf(t, raw))
	var pod corev1.Pod
	if err := json.Unmarshal(patched(t, []byte(raw), response.Patch), &pod); err != nil {
		t.Fatal(err)
	}
	if got := told(t, &pod).Resource; got != "jobs/m" {
		t.Errorf("resource %q, want jobs/m", got)
	}
}

func TestRequestsThatAreNotOurs(t *testing.T) {
	annotated := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"holdfast.dev/mutex":"M"}},"spec":{"containers":[{"name":"c"}]}}`
	plain := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}`
	tests := map[string][]byte{
		"a pod without annotations": reviewOf(t, plain),
		"an update":                 reviewOf(t, annotated, func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update }),
		"a deletion":                reviewOf(t, "", func(r *admissionv1.AdmissionRequest) { r.Operation, r.Object.Raw = admissionv1.Delete, nil }),
		"a subresource":             reviewOf(t, annotated, func(r *admissionv1.AdmissionRequest) { r.SubResource = "eviction" }),
	}
	server := newAPIServer(t)
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			if response := server.review(t, body); !response.Allowed || len(response.Patch) > 0 {
				t.Errorf("not allowed as it is: %+v", response)
			}
		})
	}
}

func TestMetricsCountEveryRequest(t *testing.T) {
	pod := func(annotation string) []byte {
		return reviewOf(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"`+annotation+`":"m"}},"spec":{"containers":[{"name":"c"}]}}`)
	}
	server := newAPIServer(t)
	for range 2 {
		server.review(t, pod("holdfast.dev/mutex"))
	}
	server.review(t, pod("holdfast.dev/mutx"))
	server.review(t, pod("other"))
	server.review(t, reviewOf(t, `{"spec":1}`))

	want := `
# HELP holdfast_admissions_total Pods that were asked about, by what became of them: injected, untouched, denied, invalid, failed.
# TYPE holdfast_admissions_total counter
holdfast_admissions_total{result="denied"} 1
holdfast_admissions_total{result="failed"} 0
holdfast_admissions_total{result="injected"} 2
holdfast_admissions_total{result="invalid"} 1
holdfast_admissions_total{result="untouched"} 1
`
	if err := testutil.GatherAndCompare(server.metrics, strings.NewReader(want), "holdfast_admissions_total"); err != nil {
		t.Error(err)
	}
	if got := testutil.CollectAndCount(server.metrics, "holdfast_admission_seconds"); got != 1 {
		t.Errorf("%d histograms, want 1", got)
	}
}
