package inject

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestPodsWithoutPlaceForAnAgent(t *testing.T) {
	const (
		rename    = "Holdfast needs this name: rename the "
		linuxOnly = "the agent runs on Linux only"
	)
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"a container named like the agent": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Name = AgentContainer },
			`spec.containers[0].name: Invalid value: "holdfast-agent": ` + rename + "container",
		},
		"an init container named like the agent": {
			func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: AgentContainer}} },
			`spec.initContainers[0].name: Invalid value: "holdfast-agent": ` + rename + "container",
		},
		"an init container named like a later feature's": {
			func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "holdfast-gate"}} },
			`spec.initContainers[0].name: Invalid value: "holdfast-gate": ` + rename + "container",
		},
		"a volume of ours": {
			func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "data"}, {Name: StateVolume}} },
			`spec.volumes[1].name: Invalid value: "holdfast-state": ` + rename + "volume",
		},
		"a mount at our path": {
			func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/var/run/holdfast/"}}
			},
			`spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/var/run/holdfast/": Holdfast needs this path: mount elsewhere, or leave the container out of holdfast.dev/containers`,
		},
		"a mount below our path": {
			func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/var/run/holdfast/data"}}
			},
			`spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/var/run/holdfast/data": Holdfast needs this path: mount elsewhere, or leave the container out of holdfast.dev/containers`,
		},
		"a variable of ours": {
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "HOLDFAST_URL", Value: "x"}}
			},
			`spec.containers[0].env[0].name: Invalid value: "HOLDFAST_URL": Holdfast sets this variable: remove it, or leave the container out of holdfast.dev/containers`,
		},
		"Windows by os": {
			func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} },
			`spec.os.name: Invalid value: "windows": ` + linuxOnly,
		},
		"Windows by node selector": {
			func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "windows"} },
			`spec.nodeSelector[kubernetes.io/os]: Invalid value: "windows": ` + linuxOnly,
		},
		"HTTP probes on the host's network": {
			func(p *corev1.Pod) { p.Spec.HostNetwork, p.Annotations[KeyProbe] = true, "http" },
			`metadata.annotations[holdfast.dev/probe]: Invalid value: "http": the pod has hostNetwork, where the agent may open no port: use "exec", or remove this key`,
		},
		"a port on the host's network": {
			func(p *corev1.Pod) { p.Spec.HostNetwork, p.Annotations[KeyAgentPort] = true, "9000" },
			`metadata.annotations[holdfast.dev/agent-port]: Invalid value: "9000": the pod has hostNetwork, where the agent opens no port: remove this key`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := testPod(KeyMutex, "m")
			tc.change(pod)
			_, got := parse(t, pod)
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContainersThatAreLeftOutMayHaveOurPathsAndVariables(t *testing.T) {
	pod := testPod(KeyMutex, "m", KeyContainers, " app ,app")
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
		Name: "other", Image: "busybox",
		Env:          []corev1.EnvVar{{Name: "HOLDFAST_DIR", Value: "/elsewhere"}},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/var/run/holdfast"}},
	})
	want := pod.Spec.Containers[1].DeepCopy()
	got := mustInject(t, pod, testSettings(t)).Spec.Containers[1]
	if diff := cmp.Diff(*want, got); diff != "" {
		t.Errorf("container that was left out (-want +got):\n%s", diff)
	}
}

// Cases ptp-operator PR#133 and telepresence#2704: the app has our port.
func TestCaseB50PortTaken(t *testing.T) {
	tests := map[string]struct {
		port     corev1.ContainerPort
		init     bool // of an init container's
		annotate string
		probe    string
		host     bool // on the host's network
		want     []string
	}{
		"the API's": {
			port: corev1.ContainerPort{ContainerPort: 8650},
			want: []string{`metadata.annotations[holdfast.dev/agent-port]: Invalid value: "8650": the agent needs ports 8650 and 8651, but container app has 8650: set another`},
		},
		"the probes'": {
			port: corev1.ContainerPort{ContainerPort: 9001, Protocol: corev1.ProtocolTCP}, annotate: "9000",
			want: []string{`metadata.annotations[holdfast.dev/agent-port]: Invalid value: "9000": the agent needs ports 9000 and 9001, but container app has 9001: set another`},
		},
		"by a sidecar": {
			port: corev1.ContainerPort{ContainerPort: 8650}, init: true,
			want: []string{`metadata.annotations[holdfast.dev/agent-port]: Invalid value: "8650": the agent needs ports 8650 and 8651, but container init has 8650: set another`},
		},
		"by an app whose probes are exec": {
			port: corev1.ContainerPort{ContainerPort: 8650}, probe: "exec",
			want: []string{`metadata.annotations[holdfast.dev/agent-port]: Invalid value: "8650": the agent needs port 8650, but container app has 8650: set another`},
		},
		"the probes', which are exec":                           {port: corev1.ContainerPort{ContainerPort: 8651}, probe: "exec"},
		"the API's, on the host's network, where there is none": {port: corev1.ContainerPort{ContainerPort: 8650}, host: true},
		"over UDP":         {port: corev1.ContainerPort{ContainerPort: 8650, Protocol: corev1.ProtocolUDP}},
		"with another set": {port: corev1.ContainerPort{ContainerPort: 8650}, annotate: "8700"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := testPod(KeyMutex, "m")
			pod.Spec.InitContainers = []corev1.Container{{Name: "init"}}
			list := pod.Spec.Containers
			if tc.init {
				list = pod.Spec.InitContainers
			}
			list[0].Ports = []corev1.ContainerPort{tc.port}
			if tc.annotate != "" {
				pod.Annotations[KeyAgentPort] = tc.annotate
			}
			if tc.probe != "" {
				pod.Annotations[KeyProbe] = tc.probe
			}
			pod.Spec.HostNetwork = tc.host
			_, got := parse(t, pod)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}
