//go:build e2e

package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pods of many shapes start, hold and are ready.
func TestShapesOfPodsThatStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		labels      []string
		objects     func(*trial)
		annotations []string
		pod         []func(*corev1.PodSpec)
		check       func(*testing.T, *trial, *corev1.Pod)
	}{
		"in a restricted namespace": {
			labels: []string{"pod-security.kubernetes.io/enforce", "restricted"},
			pod:    []func(*corev1.PodSpec){restricted},
		},
		"under a quota for requests and limits of memory, and requests of CPU": {
			objects: quota("requests.cpu", "requests.memory", "limits.memory"),
			pod:     []func(*corev1.PodSpec){resources("20m", "", "32Mi", "64Mi")},
		},
		"under a quota for limits of CPU too, with a LimitRange that fills them in": {
			objects: func(s *trial) {
				limitRange(s)
				quota("requests.cpu", "limits.cpu", "requests.memory", "limits.memory")(s)
			},
			pod: []func(*corev1.PodSpec){resources("20m", "100m", "32Mi", "64Mi")},
		},
		"with a LimitRange": {objects: limitRange},
		"with its own init container and native sidecar": {
			pod: []func(*corev1.PodSpec){ownInit},
			check: func(t *testing.T, _ *trial, pod *corev1.Pod) {
				mustOrder(t, pod, "holdfast-init", agentName, gateName, "own", "sidecar")
			},
		},
		"with the agent last": {
			annotations: []string{"order", "last"},
			pod:         []func(*corev1.PodSpec){ownInit},
			check: func(t *testing.T, _ *trial, pod *corev1.Pod) {
				mustOrder(t, pod, "own", "sidecar", "holdfast-init", agentName, gateName)
			},
		},
		"that the kubelet asks by exec, Guaranteed": {
			annotations: []string{"probe", "exec"},
			pod:         []func(*corev1.PodSpec){resources("50m", "50m", "64Mi", "64Mi")},
		},
		"of two containers, one of which can see the lock": {
			annotations: []string{"containers", "app"},
			pod:         []func(*corev1.PodSpec){apps(app("app"), app("blind"))},
			check: func(t *testing.T, s *trial, _ *corev1.Pod) {
				for _, l := range s.awaitLives(startWithin, 2) {
					if blind := l.token == "-"; blind != (l.name == "blind") {
						t.Errorf("%s found token %s", l.name, l.token)
					}
				}
			},
		},
		"that are Guaranteed": {
			pod: []func(*corev1.PodSpec){resources("50m", "50m", "64Mi", "64Mi")},
			check: func(t *testing.T, _ *trial, pod *corev1.Pod) {
				if pod.Status.QOSClass != corev1.PodQOSGuaranteed {
					t.Errorf("the class is %s, want Guaranteed", pod.Status.QOSClass)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, tc.labels...)
			if tc.objects != nil {
				tc.objects(s)
			}
			s.pod("pod", mutex(lockName, tc.annotations...), tc.pod...)
			s.awaitReady("pod")
			s.mustHold()
			if tc.check != nil {
				tc.check(t, s, s.get("pod"))
			}
		})
	}
}

// restricted is what the PodSecurity standard of that name asks for. It forbids
// the journals' volume, so the app writes into an empty one.
func restricted(spec *corev1.PodSpec) {
	spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(1000)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "journal", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
}

// resources sets those of every container; "" is none.
func resources(cpu, cpuLimit, memory, memoryLimit string) func(*corev1.PodSpec) {
	list := func(cpu, memory string) corev1.ResourceList {
		l := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
		if cpu != "" {
			l[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		return l
	}
	return func(spec *corev1.PodSpec) {
		for i := range spec.Containers {
			spec.Containers[i].Resources = corev1.ResourceRequirements{Requests: list(cpu, memory), Limits: list(cpuLimit, memoryLimit)}
		}
	}
}

// quota demands that every container says how much it needs.
func quota(names ...corev1.ResourceName) func(*trial) {
	return func(s *trial) {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}}
		q.Spec.Hard = corev1.ResourceList{}
		for _, name := range names {
			q.Spec.Hard[name] = resource.MustParse("4Gi")
		}
		if _, err := shared.CoreV1().ResourceQuotas(s.namespace).Create(s.t.Context(), q, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
		s.eventually(startWithin, "the quota is counted", func() bool {
			q, err := shared.CoreV1().ResourceQuotas(s.namespace).Get(s.t.Context(), "quota", metav1.GetOptions{})
			return err == nil && len(q.Status.Hard) == len(names)
		})
	}
}

// limitRange fills in what a container does not say.
func limitRange(s *trial) {
	l := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "range"}}
	l.Spec.Limits = []corev1.LimitRangeItem{{
		Type:           corev1.LimitTypeContainer,
		Default:        corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
	}}
	if _, err := shared.CoreV1().LimitRanges(s.namespace).Create(s.t.Context(), l, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// ownInit adds init containers of the user's, the second a native sidecar.
func ownInit(spec *corev1.PodSpec) {
	spec.InitContainers = []corev1.Container{
		{Name: "own", Image: appImage, ImagePullPolicy: corev1.PullNever, Command: []string{"sleep", "0"}},
		{
			Name: "sidecar", Image: appImage, ImagePullPolicy: corev1.PullNever, Command: []string{"sleep", "1d"},
			RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		},
	}
}

func mustOrder(t *testing.T, pod *corev1.Pod, want ...string) {
	t.Helper()
	var got []string
	for _, c := range pod.Spec.InitContainers {
		got = append(got, c.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the init containers are %v, want %v", got, want)
	}
}
