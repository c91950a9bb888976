package inject

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestResourcesThatTheAnnotationsAskFor(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for name, value := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if value != "" {
				l[name] = resource.MustParse(value)
			}
		}
		return l
	}
	guaranteed := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = list("1", "1Gi") }
	podLevel := func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Limits: list("1", "1Gi")} }
	tests := map[string]struct {
		annotations []string
		pod         func(*corev1.Pod)
		want        corev1.ResourceRequirements
	}{
		"CPU": {
			annotations: []string{KeyAgentCPU, "25m"},
			want:        corev1.ResourceRequirements{Requests: list("25m", "16Mi"), Limits: list("", "32Mi")},
		},
		"memory": {
			annotations: []string{KeyAgentMemory, "48Mi"},
			want:        corev1.ResourceRequirements{Requests: list("10m", "48Mi"), Limits: list("", "48Mi")},
		},
		"both, in a Guaranteed pod": {
			annotations: []string{KeyAgentCPU, "25m", KeyAgentMemory, "48Mi"}, pod: guaranteed,
			want: corev1.ResourceRequirements{Requests: list("25m", "48Mi"), Limits: list("25m", "48Mi")},
		},
		"CPU, in a pod with resources of its own": {
			annotations: []string{KeyAgentCPU, "25m"}, pod: podLevel,
			want: corev1.ResourceRequirements{Requests: list("25m", "")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := testPod(append([]string{KeyMutex, "m"}, tc.annotations...)...)
			if tc.pod != nil {
				tc.pod(pod)
			}
			agent := containerNamed(t, mustInject(t, pod, testSettings(t)).Spec.InitContainers, AgentContainer)
			if diff := cmp.Diff(tc.want, agent.Resources); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
