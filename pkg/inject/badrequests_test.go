package inject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBadBodies(t *testing.T) {
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}`
	review := func(request string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"%s}`, request)
	}
	tests := map[string]struct {
		contentType string
		body        []byte
		want        string // in the message
	}{
		"empty":               {"", nil, "the review has no request"},
		"not JSON":            {"", []byte("hello"), "couldn't get version/kind"},
		"half of it":          {"", reviewOf(t, pod)[:100], "unexpected end of JSON input"},
		"JSON, but no object": {"", []byte("[]"), "couldn't get version/kind"},
		"another kind":        {"", []byte(pod), "the review has no request"},
		"5 MB":                {"", bytes.Repeat([]byte("x"), 5<<20), "request body too large"},
		"5 MB of a pod":       {"", reviewOf(t, strings.Replace(pod, `"a"`, `"`+strings.Repeat("a", 5<<20)+`"`, 1)), "request body too large"},
		"no request":          {"", review(""), "the review has no request"},
		"a null request":      {"", review(`,"request":null`), "the review has no request"},
		"an empty request":    {"", review(`,"request":{}`), "the review has no request"},
		"a request of text":   {"", review(`,"request":"x"`), "cannot unmarshal"},
		"not of a pod": {"", reviewOf(t, pod, func(r *admissionv1.AdmissionRequest) {
			r.Kind = metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
		}), "takes pods only, not apps/v1 Deployment"},
		"no object":           {"", reviewOf(t, "", func(r *admissionv1.AdmissionRequest) { r.Object.Raw = nil }), "there is no content to decode"},
		"an object of lists":  {"", reviewOf(t, `{"apiVersion":"v1","kind":"Pod","spec":{"containers":{"name":"c"}}}`), "cannot unmarshal"},
		"not said to be JSON": {"text/plain", reviewOf(t, pod), "expected application/json"},
	}
	server := newAPIServer(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			contentType := tc.contentType
			if contentType == "" {
				contentType = "application/json"
			}
			response := server.send(t, contentType, tc.body)
			var review admissionv1.AdmissionReview
			if err := json.NewDecoder(response.Body).Decode(&review); err != nil {
				t.Fatalf("%s: %v", response.Status, err)
			}
			if review.Response == nil || review.Response.Allowed {
				t.Fatalf("not denied: %+v", review.Response)
			}
			if result := review.Response.Result; result.Code != http.StatusBadRequest || !strings.Contains(result.Message, tc.want) {
				t.Errorf("code %d, message %q; want 400 and %q", result.Code, result.Message, tc.want)
			}
		})
	}
}

func TestOnlyPostsToOnePath(t *testing.T) {
	server := newAPIServer(t)
	for request, want := range map[string]int{
		"GET " + PodsPath: http.StatusMethodNotAllowed,
		"POST /":          http.StatusNotFound,
	} {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequest(method, server.URL+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %s, want %d", request, response.Status, want)
		}
	}
}
