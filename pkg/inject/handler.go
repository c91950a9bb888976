package inject

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// PodsPath is where the API server sends new pods.
const PodsPath = "/mutate-pods"

// maxBody is more than an API server takes for one object, and well below what
// could hurt.
const maxBody = 4 << 20

var podKind = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}

// NewHandler answers the admission requests of an API server: each pod that is
// created comes back with its agent, or with all that is wrong with it.
func NewHandler(settings *Settings, metrics *Metrics, log *slog.Logger) (http.Handler, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	pods := &podHandler{settings, metrics, log, admission.NewDecoder(scheme)}
	webhook, err := admission.StandaloneWebhook(&admission.Webhook{Handler: pods}, admission.StandaloneOptions{
		Logger: logr.FromSlogHandler(log.Handler()),
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+PodsPath, http.MaxBytesHandler(webhook, maxBody))
	return mux, nil
}

type podHandler struct {
	settings *Settings
	metrics  *Metrics
	log      *slog.Logger
	decoder  admission.Decoder
}

// Handle judges one request. It never fails for lack of anything but the request.
func (h *podHandler) Handle(_ context.Context, req admission.Request) admission.Response {
	start := time.Now()
	response, result := h.handle(req)
	h.metrics.observe(result, time.Since(start))
	return response
}

func (h *podHandler) handle(req admission.Request) (admission.Response, result) {
	if len(req.Object.Raw) == 0 && req.UID == "" {
		return invalid("the review has no request")
	}
	if req.Kind != podKind {
		return invalid("takes pods only, not %s %s", schema.GroupVersion{Group: req.Kind.Group, Version: req.Kind.Version}, req.Kind.Kind)
	}
	if req.Operation != admissionv1.Create || req.SubResource != "" {
		return admission.Allowed(""), resultUntouched
	}
	var pod corev1.Pod
	if err := h.decoder.Decode(req, &pod); err != nil {
		return invalid("pod: %v", err)
	}
	return h.inject(req, &pod)
}

func (h *podHandler) inject(req admission.Request, pod *corev1.Pod) (admission.Response, result) {
	name := cmp.Or(pod.Name, pod.GenerateName) // a controller's pod has no name yet
	log := h.log.With("namespace", req.Namespace, "pod", name)
	request, errs := Parse(&pod.ObjectMeta, &pod.Spec, req.Namespace, h.settings)
	if len(errs) > 0 {
		log.Info("pod denied", "error", errs.ToAggregate())
		status := apierrors.NewInvalid(schema.GroupKind{Kind: podKind.Kind}, name, errs).Status()
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}, resultDenied
	}
	if request == nil {
		return admission.Allowed(""), resultUntouched
	}
	before := pod.DeepCopy()
	Mutate(pod, request, h.settings)
	mutated, err := carryOver(req.Object.Raw, before, pod)
	if err != nil {
		return invalid("%v", err)
	}
	log.Info("pod injected", "resource", request.Agent.Resource)
	return admission.PatchResponseFromRaw(req.Object.Raw, mutated), resultInjected
}

func invalid(format string, args ...any) (admission.Response, result) {
	return admission.Errored(http.StatusBadRequest, fmt.Errorf(format, args...)), resultInvalid
}
