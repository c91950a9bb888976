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

// Cases linkerd2#1480 and dapr#2147: an autoscaler cannot work with a container
// that requests no CPU.
func TestCaseB49RequestsByDefault(t *testing.T) {
	for _, c := range mustInject(t, testPod(KeyMutex, "m"), testSettings(t)).Spec.InitContainers {
		want := corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("10m"), "memory": resource.MustParse("16Mi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("32Mi")},
		}
		if diff := cmp.Diff(want, c.Resources); diff != "" {
			t.Errorf("resources of %s (-want +got):\n%s", c.Name, diff)
		}
	}
}

func TestQualityOfServiceStays(t *testing.T) {
	limits := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	half := corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}
	tests := map[string]struct {
		app  corev1.ResourceRequirements
		init *corev1.ResourceRequirements
		want bool
	}{
		"limits alone":                  {corev1.ResourceRequirements{Limits: limits}, nil, true},
		"requests as limits":            {corev1.ResourceRequirements{Limits: limits, Requests: limits}, nil, true},
		"requests below limits":         {corev1.ResourceRequirements{Limits: limits, Requests: half}, nil, false},
		"no limits":                     {corev1.ResourceRequirements{Requests: limits}, nil, false},
		"memory alone":                  {corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": limits["memory"]}}, nil, false},
		"an init container without":     {corev1.ResourceRequirements{Limits: limits}, &corev1.ResourceRequirements{}, false},
		"an init container with limits": {corev1.ResourceRequirements{Limits: limits}, &corev1.ResourceRequirements{Limits: half}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := testPod(KeyMutex, "m")
			pod.Spec.Containers[0].Resources = tc.app
			if tc.init != nil {
				pod.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: *tc.init}}
			}
			pod = mustInject(t, pod, testSettings(t))
			if got := guaranteedWithUs(pod); got != tc.want {
				t.Errorf("guaranteed: %t, want %t", got, tc.want)
			}
		})
	}
}

// guaranteedWithUs looks at every container, ours included.
func guaranteedWithUs(pod *corev1.Pod) bool {
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		if !fixed(c.Resources) {
			return false
		}
	}
	return true
}

func TestPodLevelResourcesLeaveOursUnset(t *testing.T) {
	pod := testPod(KeyMutex, "m")
	pod.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	for _, c := range mustInject(t, pod, testSettings(t)).Spec.InitContainers {
		if diff := cmp.Diff(corev1.ResourceRequirements{}, c.Resources); diff != "" {
			t.Errorf("resources of %s (-want +got):\n%s", c.Name, diff)
		}
	}
	pod.Annotations[KeyAgentMemory] = "20Mi"
	for _, c := range mustInject(t, pod, testSettings(t)).Spec.InitContainers {
		if got := c.Resources.Limits.Memory().String(); got != "20Mi" {
			t.Errorf("memory limit of %s: %s, want what was asked for", c.Name, got)
		}
	}
}
