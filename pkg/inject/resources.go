package inject

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// guaranteedCPU is what an agent gets where it must have a limit: enough that a
// renewal is not throttled.
var guaranteedCPU = resource.MustParse("50m")

// resources asks for little, and leaves the pod's quality of service as it is. A
// CPU limit is set only where that needs one: an agent that is throttled renews
// late, and loses locks.
func resources(spec *corev1.PodSpec, req *Request, settings *Settings) corev1.ResourceRequirements {
	if spec.Resources != nil && len(spec.Resources.Requests)+len(spec.Resources.Limits) > 0 {
		return explicitResources(req) // the pod as a whole has its share
	}
	cpu, memory, limit := *settings.Agent.CPURequest, *settings.Agent.MemoryRequest, *settings.Agent.MemoryLimit
	if req.Memory != nil {
		memory, limit = *req.Memory, *req.Memory
	}
	if guaranteed(spec) {
		cpu, memory = guaranteedCPU, limit
	}
	if req.CPU != nil {
		cpu = *req.CPU
	}
	r := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: limit},
	}
	if guaranteed(spec) {
		r.Limits[corev1.ResourceCPU] = cpu
	}
	return r
}

// explicitResources is only what the annotations say.
func explicitResources(req *Request) corev1.ResourceRequirements {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	if req.CPU != nil {
		requests[corev1.ResourceCPU] = *req.CPU
	}
	if req.Memory != nil {
		requests[corev1.ResourceMemory] = *req.Memory
		limits[corev1.ResourceMemory] = *req.Memory
	}
	if len(requests) == 0 {
		return corev1.ResourceRequirements{}
	}
	r := corev1.ResourceRequirements{Requests: requests}
	if len(limits) > 0 {
		r.Limits = limits
	}
	return r
}

// guaranteed tells whether the pod has the class Guaranteed without us: every
// container has limits on CPU and memory, and requests as much.
func guaranteed(spec *corev1.PodSpec) bool {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, c := range list {
			if !reservedContainers.Has(c.Name) && !fixed(c.Resources) {
				return false
			}
		}
	}
	return len(spec.Containers) > 0
}

// fixed tells whether requests equal limits. A request that is missing defaults
// to the limit.
func fixed(r corev1.ResourceRequirements) bool {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, request := r.Limits[name], r.Requests[name]
		if limit.IsZero() || !request.IsZero() && request.Cmp(limit) != 0 {
			return false
		}
	}
	return true
}
