package main

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAdmit(t *testing.T) {
	cases := map[string]struct {
		response   admissionv1.AdmissionResponse // UID is filled in if empty
		status     int                           // of HTTP; 200
		wantLabels map[string]string
		wantErr    string // after the webhook's address
	}{
		"untouched": {response: admissionv1.AdmissionResponse{Allowed: true}},
		"patched": {
			response:   admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`)},
			wantLabels: map[string]string{"a": "b"},
		},
		"denied": {
			response: admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "no such key"}},
			wantErr:  "the webhook denied the pod: no such key",
		},
		"denied without a word": {
			wantErr: "the webhook denied the pod: no reason given",
		},
		"a patch with a field that does not exist": {
			response: admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(`[{"op":"add","path":"/spec/volume","value":[]}]`)},
			wantErr:  `read the patched pod: json: unknown field "volume"`,
		},
		"a patch that does not fit": {
			response: admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(`[{"op":"remove","path":"/spec/volumes"}]`)},
			wantErr:  "apply the webhook's patch: error in remove for path: '/spec/volumes': unable to remove nonexistent key: volumes: missing value",
		},
		"another's answer": {
			response: admissionv1.AdmissionResponse{Allowed: true, UID: "another"},
			wantErr:  `admission webhook URL: answered review "another", asked was "UID"`,
		},
		"an error": {
			status:  http.StatusInternalServerError,
			wantErr: "admission webhook URL: 500 Internal Server Error: broken",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var asked admissionv1.AdmissionRequest
			server := httptest.NewTLSServer(webhookThatSays(t, &asked, tc.response, tc.status))
			defer server.Close()
			a := admission{url: server.URL, client: server.Client()}
			got, err := a.admit(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "etl-"}}, "orders")

			if diff := cmp.Diff(tc.wantErr, withoutIDs(errorText(err), server.URL, asked.UID)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if asked.Namespace != "orders" || asked.Operation != admissionv1.Create {
				t.Errorf("asked about %s in namespace %q, want CREATE in %q", asked.Operation, asked.Namespace, "orders")
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.wantLabels, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

// webhookThatSays notes what it is asked, and always gives the same answer: to
// whom it asked, if the answer has no UID; or an HTTP status alone, unless 0.
func webhookThatSays(t *testing.T, asked *admissionv1.AdmissionRequest, answer admissionv1.AdmissionResponse, status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		*asked = *review.Request
		if status != 0 {
			http.Error(w, "broken", status)
			return
		}
		if answer.UID == "" {
			answer.UID = asked.UID
		}
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{Response: &answer})
	}
}

func withoutIDs(text, url string, uid types.UID) string {
	return strings.NewReplacer(url, "URL", string(uid), "UID").Replace(text)
}

// What the demo's certificate is for: its client believes it, and no other.
func TestCertificate(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	ca, err := writeCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := writeCertificate(other)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()

	response, err := trusting(ca).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if _, err := trusting(stranger).Get(server.URL); err == nil {
		t.Error("a client that trusts another certificate got an answer")
	}
}
