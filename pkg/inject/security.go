package inject

import (
	corev1 "k8s.io/api/core/v1"
)

// securityContext meets PodSecurity "restricted", and holds whatever the pod
// says for its own containers, running as root included.
func securityContext(spec *corev1.PodSpec, settings *Settings) *corev1.SecurityContext {
	sc := &corev1.SecurityContext{
		RunAsNonRoot:             new(true),
		RunAsUser:                &settings.Agent.RunAsUser,
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if settings.Agent.OmitRunAsUser && !podIsRoot(spec) {
		sc.RunAsUser = nil
	}
	return sc
}

// podIsRoot tells whether a container without a uid of its own would be root,
// which ours refuse to be.
func podIsRoot(spec *corev1.PodSpec) bool {
	sc := spec.SecurityContext
	return sc != nil && sc.RunAsUser != nil && *sc.RunAsUser == 0
}
