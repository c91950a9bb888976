package inject

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// How the kubelet asks, and where the agent listens, follows from where the kubelet
// can reach it.
func TestTheKubeletAsksInAWayThatGetsThrough(t *testing.T) {
	type doors struct{ Probe, Listen, ProbeListen, URL string }
	const socket = "/var/lib/holdfast/probe.sock"
	overHTTP := doors{"http", "localhost:8650", ":8651", "http://127.0.0.1:8650"}
	byExec := doors{"exec", "localhost:8650", socket, "http://127.0.0.1:8650"}
	noPorts := doors{"exec", "", socket, "unix:///var/run/holdfast/agent.sock"}

	native := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: name, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
		}
	}
	annotate := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations[key] = value }
	}
	label := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{key: value} }
	}
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   doors
	}{
		"a plain pod":              {func(*corev1.Pod) {}, overHTTP},
		"the annotation says exec": {annotate(KeyProbe, "exec"), byExec},
		"the host's network":       {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, noPorts},
		"Istio's container": {func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "istio-proxy"})
		}, byExec},
		"Istio's native sidecar":    {native("istio-proxy"), byExec},
		"Istio's label":             {label("sidecar.istio.io/inject", "true"), byExec},
		"Istio's annotation":        {annotate("sidecar.istio.io/inject", "true"), byExec},
		"Istio's label says no":     {label("sidecar.istio.io/inject", "false"), overHTTP},
		"Linkerd's native sidecar":  {native("linkerd-proxy"), byExec},
		"Linkerd's annotation":      {annotate("linkerd.io/inject", "enabled"), byExec},
		"its other value":           {annotate("linkerd.io/inject", "ingress"), byExec},
		"Linkerd is said to be off": {annotate("linkerd.io/inject", "disabled"), overHTTP},
		"a mesh that lets the port through": {
			func(p *corev1.Pod) { native("istio-proxy")(p); p.Annotations[KeyProbe] = "http" }, overHTTP,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := testPod(KeyMutex, "m")
			tc.change(pod)
			pod = mustInject(t, pod, testSettings(t))
			config := told(t, pod)
			got := doors{"exec", config.Listen, config.ProbeListen, pod.Spec.Containers[0].Env[0].Value}
			agent := containerNamed(t, pod.Spec.InitContainers, AgentContainer)
			if agent.LivenessProbe.HTTPGet != nil && agent.StartupProbe.HTTPGet != nil {
				got.Probe = "http"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The proxy of a mesh that a whole namespace is in comes after the first pass.
func TestAProxyThatComesLaterChangesTheProbes(t *testing.T) {
	settings := testSettings(t)
	proxy := corev1.Container{Name: "istio-proxy", Image: "proxy"}
	fromTheStart := testPod(KeyMutex, "m", KeyTTL, "40s")
	fromTheStart.Spec.Containers = append(fromTheStart.Spec.Containers, proxy)
	want := mustInject(t, fromTheStart, settings)

	later := mustInject(t, testPod(KeyMutex, "m", KeyTTL, "40s"), settings)
	agent := containerNamed(t, later.Spec.InitContainers, AgentContainer)
	agent.LivenessProbe.HTTPGet.Path = "/app-health/holdfast-agent/livez" // as Istio rewrites it
	later.Spec.Containers = append(later.Spec.Containers, proxy)
	got := mustInject(t, later, settings)
	if diff := cmp.Diff(want.Spec.InitContainers, got.Spec.InitContainers); diff != "" {
		t.Errorf("the proxy there from the start, and later (-start +later):\n%s", diff)
	}
}

// An exec probe finds a frozen agent in the same time as an HTTP probe: it asks as
// often, it may miss as many answers, and it never lasts for as long as it may.
func TestExecProbesAreAsQuickAsHTTPProbes(t *testing.T) {
	for ttl, every := range map[string]string{"20s": "1s", "30s": "2s", "44s": "2s", "45s": "3s", "60s": "4s"} {
		probes := map[string]*corev1.Probe{}
		for _, how := range []string{"http", "exec"} {
			pod := mustInject(t, testPod(KeyMutex, "m", KeyTTL, ttl, KeyProbe, how), testSettings(t))
			probes[how] = containerNamed(t, pod.Spec.InitContainers, AgentContainer).LivenessProbe
		}
		want := probes["http"].DeepCopy()
		want.HTTPGet, want.TimeoutSeconds = nil, 50
		want.Exec = &corev1.ExecAction{Command: []string{"/holdfast-agent", "probe", "--for", "30s", "--every", every}}
		if diff := cmp.Diff(want, probes["exec"]); diff != "" {
			t.Errorf("ttl %s (-want +got):\n%s", ttl, diff)
		}
	}
}
