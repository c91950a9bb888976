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
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// PodsPath is where the API server sends new pods.
const PodsPath = "/mutate-pods"

// maxBody is more than an API server takes for one object, and well below what
// could hurt.
const maxBody = 4 << 20

var podKind = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}

// NewHandler answers the admission requests of an API server: each pod that is
// created comes back with its agent, or with all that is wrong with it. It asks
// owners about nothing but the ReplicaSets of pods whose lock may be handed over.
func NewHandler(settings *Settings, owners OwnerLookup, metrics *Metrics, log *slog.Logger) (http.Handler, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	pods := &podHandler{settings, owners, metrics, log, admission.NewDecoder(scheme)}
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
	owners   OwnerLookup
	metrics  *Metrics
	log      *slog.Logger
	decoder  admission.Decoder
}

// Handle judges one request.
func (h *podHandler) Handle(ctx context.Context, req admission.Request) admission.Response {
	start := time.Now()
	response, result := h.handle(ctx, req)
	h.metrics.observe(result, time.Since(start))
	return response
}

func (h *podHandler) handle(ctx context.Context, req admission.Request) (admission.Response, result) {
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
	return h.inject(ctx, req, &pod)
}

func (h *podHandler) inject(ctx context.Context, req admission.Request, pod *corev1.Pod) (admission.Response, result) {
	name := cmp.Or(pod.Name, pod.GenerateName) // a controller's pod has no name yet
	log := h.log.With("namespace", req.Namespace, "pod", name)
	request, errs := Parse(&pod.ObjectMeta, &pod.Spec, req.Namespace, h.settings)
	if request != nil {
		owner, err := h.owner(ctx, req.Namespace, request.needsOwner(&pod.ObjectMeta))
		if err != nil {
			log.Error("pod denied for now", "error", err)
			return unavailable(name, err), resultFailed
		}
		errs = request.belongTo(owner)
	}
	switch {
	case len(errs) > 0:
		log.Info("pod denied", "error", errs.ToAggregate())
		return denied(name, errs), resultDenied
	case request == nil:
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

// ownerTimeout leaves time for the rest: the API server gives up on the webhook
// after five seconds.
const ownerTimeout = 2 * time.Second

// owner asks about the ReplicaSet, if there is one to ask about.
func (h *podHandler) owner(ctx context.Context, namespace string, replicaSet *metav1.OwnerReference) (*Owner, error) {
	if replicaSet == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	owner, err := h.owners(ctx, namespace, *replicaSet)
	if err != nil {
		return nil, fmt.Errorf("ReplicaSet %q: %w", namespace+"/"+replicaSet.Name, err)
	}
	return owner, nil
}

func denied(pod string, errs field.ErrorList) admission.Response {
	return refusal(apierrors.NewInvalid(schema.GroupKind{Kind: podKind.Kind}, pod, errs))
}

// unavailable denies a pod that may be right: whoever made it, a ReplicaSet's
// controller first of all, tries again.
func unavailable(pod string, err error) admission.Response {
	return refusal(apierrors.NewServiceUnavailable(fmt.Sprintf(
		"Pod %q cannot be judged now, for who may take its lock over is not known: %v; it is made once that works, or at once with %s: off",
		pod, err, KeyHandoff)))
}

func refusal(err *apierrors.StatusError) admission.Response {
	status := err.Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

func invalid(format string, args ...any) (admission.Response, result) {
	return admission.Errored(http.StatusBadRequest, fmt.Errorf(format, args...)), resultInvalid
}
