package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The class decides who is evicted first, and is the API server's own judgement.
func TestCaseB49QualityOfServiceStays(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	cases := map[string]struct {
		change func(*corev1.Pod)
		want   corev1.PodQOSClass
	}{
		"limits only, so requests as much": {
			func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Limits = amounts("1", "1Gi") },
			corev1.PodQOSGuaranteed,
		},
		"requests and limits are equal": {
			func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amounts("1000m", "1Gi"), Limits: amounts("1", "1024Mi")}
			},
			corev1.PodQOSGuaranteed,
		},
		"an init container has them too": {
			func(pod *corev1.Pod) {
				limits := corev1.ResourceRequirements{Limits: amounts("100m", "64Mi")}
				pod.Spec.Containers[0].Resources = limits
				pod.Spec.InitContainers = []corev1.Container{{Name: "migrate", Image: "registry.example/migrate:1", Resources: limits}}
			},
			corev1.PodQOSGuaranteed,
		},
		"limits of the pod as a whole": {
			func(pod *corev1.Pod) { pod.Spec.Resources = &corev1.ResourceRequirements{Limits: amounts("2", "2Gi")} },
			corev1.PodQOSGuaranteed,
		},
		"requests only": {
			func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Requests = amounts("1", "1Gi") },
			corev1.PodQOSBurstable,
		},
		"requests of the pod as a whole": {
			func(pod *corev1.Pod) {
				pod.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("1", "1Gi")}
			},
			corev1.PodQOSBurstable,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := c.newNamespace(t, nil)
			without, with := c.mustCreate(t, namespace, newPod(nil, tc.change)), c.mustCreate(t, namespace, newPod(mutex, tc.change))
			agent(t, with)
			got := []corev1.PodQOSClass{without.Status.QOSClass, with.Status.QOSClass}
			if diff := cmp.Diff([]corev1.PodQOSClass{tc.want, tc.want}, got); diff != "" {
				t.Errorf("class without and with the agent (-want +got)\n%s", diff)
			}
		})
	}
}

// An autoscaler by CPU can do nothing with a pod of which one container has no
// CPU request.
func TestCaseB49AgentHasRequests(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	pod := c.mustCreate(t, c.newNamespace(t, nil), newPod(mutex))
	for _, name := range []string{initName, agentName} {
		requests := initContainer(pod, name).Resources.Requests
		if requests.Cpu().IsZero() || requests.Memory().IsZero() {
			t.Errorf("%s requests %v, want CPU and memory", name, requests)
		}
	}
}

// With resources for the pod as a whole, the agent lives on its share.
func TestPodLevelResources(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	whole := corev1.ResourceRequirements{Requests: amounts("1", "1Gi"), Limits: amounts("2", "2Gi")}
	pod := c.mustCreate(t, c.newNamespace(t, nil), newPod(mutex, func(pod *corev1.Pod) { pod.Spec.Resources = &whole }))
	if diff := cmp.Diff(corev1.ResourceRequirements{}, agent(t, pod).Resources); diff != "" {
		t.Errorf("the agent's own resources (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(&whole, pod.Spec.Resources); diff != "" {
		t.Errorf("the pod's resources (-want +got)\n%s", diff)
	}
}

func TestNamespaceWithLimitRange(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	cases := map[string]struct {
		limits  corev1.LimitRangeItem
		wantQOS corev1.PodQOSClass // of a pod that says nothing
	}{
		"defaults that make pods Guaranteed": {
			corev1.LimitRangeItem{Default: amounts("500m", "512Mi")},
			corev1.PodQOSGuaranteed,
		},
		"defaults and bounds": {
			corev1.LimitRangeItem{DefaultRequest: amounts("100m", "128Mi"), Default: amounts("500m", "512Mi"), Max: amounts("2", "2Gi"), Min: amounts("5m", "8Mi")},
			corev1.PodQOSBurstable,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := c.newNamespace(t, nil)
			tc.limits.Type = corev1.LimitTypeContainer
			limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "defaults"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{tc.limits}}}
			if _, err := c.CoreV1().LimitRanges(namespace).Create(t.Context(), limits, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			pod := c.mustCreate(t, namespace, newPod(mutex))
			agent(t, pod)
			if got := pod.Status.QOSClass; got != tc.wantQOS {
				t.Errorf("class %s, want %s", got, tc.wantQOS)
			}
		})
	}
}

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}
