package apiserver

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// front is what the API server calls in the webhook's place: it counts the
// requests of each namespace, hands them on to the real webhook, and can play
// dead towards one namespace, as the webhook looks to the API server when its
// pod is gone, while the tests of other namespaces go on.
type front struct {
	*httptest.Server

	mu       sync.Mutex
	onward   *httputil.ReverseProxy
	requests map[string]int
	dead     map[string]bool
}

func newFront() *front {
	f := &front{requests: map[string]int{}, dead: map[string]bool{}}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		onward := f.seen(r)
		if onward == nil {
			panic(http.ErrAbortHandler) // breaks the connection
		}
		onward.ServeHTTP(w, r)
	}))
	return f
}

// forward hands requests on to the webhook at address, whose certificate is the
// front's own.
func (f *front) forward(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onward = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: address})
	f.onward.Transport = f.Client().Transport
}

// seen counts a request and tells who answers it: nobody, to play dead.
func (f *front) seen(r *http.Request) http.Handler {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests[review.Request.Namespace]++
	if f.dead[review.Request.Namespace] {
		return nil
	}
	return f.onward
}

// countOf is how many requests came for the namespace's objects.
func (f *front) countOf(namespace string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[namespace]
}

// playDead is for the rest of the test.
func (f *front) playDead(t *testing.T, namespace string) {
	f.setDead(namespace, true)
	t.Cleanup(func() { f.setDead(namespace, false) })
}

// certificate is the front's own, as PEM, with its key.
func (f *front) certificate() (certificate, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(f.TLS.Certificates[0].PrivateKey)
	if err != nil {
		return nil, nil, err
	}
	return pemOf(f.Certificate()), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func (f *front) setDead(namespace string, dead bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead[namespace] = dead
}

func pemOf(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// redirect makes the webhook configurations among the manifests call the front
// instead of the Service, which needs a node to run on.
func (f *front) redirect(manifests []*unstructured.Unstructured) error {
	for _, m := range manifests {
		if m.GetKind() != "MutatingWebhookConfiguration" && m.GetKind() != "ValidatingWebhookConfiguration" {
			continue
		}
		webhooks, _, err := unstructured.NestedSlice(m.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, webhook := range webhooks {
			client := webhook.(map[string]any)["clientConfig"].(map[string]any)
			path := client["service"].(map[string]any)["path"].(string)
			delete(client, "service")
			client["url"] = f.URL + path
			client["caBundle"] = base64.StdEncoding.EncodeToString(pemOf(f.Certificate()))
		}
		if err := unstructured.SetNestedSlice(m.Object, webhooks, "webhooks"); err != nil {
			return err
		}
	}
	return nil
}
