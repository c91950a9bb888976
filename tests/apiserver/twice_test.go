package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod that was injected once, exported, and applied again, as backup tools do.
func TestCaseB44InjectedPodAppliedAgain(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	first := c.mustCreate(t, namespace, newPod(mutex))
	again := newPod(first.Annotations, func(pod *corev1.Pod) {
		pod.Labels = first.Labels
		pod.Spec = *first.Spec.DeepCopy()
	})
	second := c.mustCreate(t, namespace, again)
	if diff := cmp.Diff(first.Spec, second.Spec); diff != "" {
		t.Errorf("the spec changed the second time (-first +second)\n%s", diff)
	}
}

// Another webhook changes the pod after ours has seen it, so the API server asks
// ours again.
func TestCaseB44AskedTwice(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	fromTheStart := c.mustCreate(t, namespace, newPod(mutex, func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{{Name: "meddler", Image: "registry.example/meddler:1"}}
	}))

	c.addMeddler(t, newMeddler(t, "meddler"), namespace)
	pod, asked := c.createMeddled(t, namespace, "meddler")
	if asked != 2 {
		t.Fatalf("the webhook was asked %d times, want 2: this test proves nothing", asked)
	}
	// The second time it sees one container more, which also takes time to stop.
	if diff := cmp.Diff(fromTheStart.Spec, pod.Spec); diff != "" {
		t.Errorf("the meddler's container there from the start, and added later (-start +later)\n%s", diff)
	}
}

// createMeddled creates pods until the API server has noticed that there is a
// meddler, and tells how often our webhook was asked about the last one.
func (c *cluster) createMeddled(t *testing.T, namespace, meddler string) (pod *corev1.Pod, asked int) {
	t.Helper()
	eventually(t, func() bool {
		before := c.front.countOf(namespace)
		pod = c.mustCreate(t, namespace, newPod(mutex))
		asked = c.front.countOf(namespace) - before
		return initContainer(pod, meddler) != nil
	})
	return pod, asked
}

// newMeddler is a webhook that puts its container before all others, as proxies do.
func newMeddler(t *testing.T, name string) *httptest.Server {
	patch := []byte(`[{"op":"add","path":"/spec/initContainers/0","value":{"name":"` + name + `","image":"registry.example/meddler:1"}}]`)
	kind := admissionv1.PatchTypeJSONPatch
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: &kind}
		review.Request = nil
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// addMeddler registers it for one namespace, under a name that sorts after ours:
// that is the order in which the API server asks.
func (c *cluster) addMeddler(t *testing.T, meddler *httptest.Server, namespace string) {
	t.Helper()
	none, all := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Equivalent
	config := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "zz-meddler-" + namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "meddler.example.org",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             &none,
			MatchPolicy:             &all,
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &meddler.URL, CABundle: pemOf(meddler.Certificate())},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
	configs := c.AdmissionregistrationV1().MutatingWebhookConfigurations()
	if _, err := configs.Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := configs.Delete(context.Background(), config.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}
