package inject

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

func TestAgentIsToldWhatTheAnnotationsSay(t *testing.T) {
	settings := testSettings(t)
	settings.Redis.Guard, settings.Agent.LogLevel = "off", "debug"
	settings.Redis.Wait, settings.Redis.AllowEviction = 1, true
	pod := testPod(KeySemaphore, "vendor", KeyPermits, "5", KeyPriority, "-3", KeyTTL, "45s", KeyAgentPort, "9000", KeyGate, "none")
	pod.Spec.TerminationGracePeriodSeconds = new(int64(90))

	got := told(t, mustInject(t, pod, settings))
	want := agentenv.Default()
	want.Kind, want.Resource, want.Permits, want.Priority = agentenv.Semaphore, "jobs/vendor", 5, -3
	want.TTL, want.Margin = 45*time.Second, 9*time.Second
	want.Gate, want.OnLost = agentenv.GateNone, agentenv.LostNotify
	want.GracePeriod = 90 * time.Second
	want.Listen, want.ProbeListen = "localhost:9000", ":9001"
	want.LogLevel = -4
	want.Redis = agentenv.Redis{
		URLFile: "/etc/holdfast/redis/url", UsernameFile: "/etc/holdfast/redis/username",
		PasswordFile: "/etc/holdfast/redis/password", CAFile: "/etc/holdfast/redis/ca.crt",
		CertFile: "/etc/holdfast/redis/tls.crt", KeyFile: "/etc/holdfast/redis/tls.key",
		SentinelUsernameFile: "/etc/holdfast/redis/sentinel-username", SentinelPasswordFile: "/etc/holdfast/redis/sentinel-password",
		Wait: 1, AllowEviction: true,
	}
	want.Pod = agentenv.Pod{Name: "metadata.name", Namespace: "metadata.namespace", UID: "metadata.uid", Node: "spec.nodeName"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the agent reads (-want +got):\n%s", diff)
	}
}

func TestGracePeriodsThatAgentsUnderstand(t *testing.T) {
	for seconds, want := range map[int64]time.Duration{0: 0, 1: time.Second, math.MaxInt64: math.MaxInt64 / time.Second * time.Second} {
		pod := testPod(KeyMutex, "m")
		pod.Spec.TerminationGracePeriodSeconds = &seconds
		if got := told(t, mustInject(t, pod, testSettings(t))).GracePeriod; got != want {
			t.Errorf("%d seconds: the agent reads %s, want %s", seconds, got, want)
		}
	}
}

func TestOnlyStopRestartsThePod(t *testing.T) {
	for onLost, want := range map[string]int{"stop": 1, "notify": 0} {
		pod := mustInject(t, testPod(KeyMutex, "m", KeyOnLost, onLost), testSettings(t))
		agent := containerNamed(t, pod.Spec.InitContainers, AgentContainer)
		if got := len(agent.RestartPolicyRules); got != want {
			t.Errorf("on-lost %s: %d restart rules, want %d", onLost, got, want)
		}
	}
}

func TestLivenessFollowsTheTTL(t *testing.T) {
	for ttl, want := range map[string]int32{"20s": 1, "30s": 2, "44s": 2, "45s": 3, "60s": 4} {
		pod := mustInject(t, testPod(KeyMutex, "m", KeyTTL, ttl), testSettings(t))
		agent := containerNamed(t, pod.Spec.InitContainers, AgentContainer)
		if got := agent.LivenessProbe.PeriodSeconds; got != want {
			t.Errorf("ttl %s: asked every %d s, want %d", ttl, got, want)
		}
	}
}

// Cases kubernetes#73118, linkerd2#1869 and dapr#5006: a sidecar keeps a Job from
// completing. The kubelet ends a native one by itself.
func TestCaseB37AgentIsANativeSidecar(t *testing.T) {
	pod := testPod(KeyMutex, "m")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod = mustInject(t, pod, testSettings(t))
	agent := containerNamed(t, pod.Spec.InitContainers, AgentContainer)
	if agent.RestartPolicy == nil || *agent.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Errorf("restart policy of the agent: %v, want Always", agent.RestartPolicy)
	}
	if len(pod.Spec.Containers) != 1 || pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("the app is not as it was: %d containers, restart policy %s", len(pod.Spec.Containers), pod.Spec.RestartPolicy)
	}
}

// Cases istio#25931, #55691 and kserve PR#3517: injected twice. Between the
// passes another webhook has put its own container first.
func TestCaseB44InjectedOnceAroundOthers(t *testing.T) {
	settings := testSettings(t)
	pod := mustInject(t, testPod(KeyMutex, "m"), settings)
	other := corev1.Container{Name: "other", Image: "busybox"}
	pod.Spec.InitContainers = append([]corev1.Container{other}, pod.Spec.InitContainers...)

	pod = mustInject(t, pod, settings)
	if diff := cmp.Diff([]string{InitContainer, AgentContainer, GateContainer, "other"}, names(pod.Spec.InitContainers)); diff != "" {
		t.Errorf("init containers (-want +got):\n%s", diff)
	}
	if got := len(pod.Spec.Volumes); got != 3 {
		t.Errorf("%d volumes, want 3", got)
	}
}

// An agent that is there already is not believed, whatever has been changed.
func TestForgedAgentIsPutRight(t *testing.T) {
	settings := testSettings(t)
	want := mustInject(t, testPod(KeyMutex, "m"), settings)
	forgeries := map[string]func(*corev1.Container){
		"no rule":         func(c *corev1.Container) { c.RestartPolicyRules = nil },
		"another rule":    func(c *corev1.Container) { c.RestartPolicyRules[0].ExitCodes.Values = []int32{0, 87} },
		"no start probe":  func(c *corev1.Container) { c.StartupProbe = nil },
		"no liveness":     func(c *corev1.Container) { c.LivenessProbe = nil },
		"no hook":         func(c *corev1.Container) { c.Lifecycle = nil },
		"arguments":       func(c *corev1.Container) { c.Args = []string{"--hold"} },
		"another lock":    func(c *corev1.Container) { c.Env[1].Value = "other/m" },
		"a variable more": func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: "HOLDFAST_REDIS_GUARD"}) },
		"variables from":  func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{{Prefix: "HOLDFAST_"}} },
		"root":            func(c *corev1.Container) { c.SecurityContext = nil },
		"another Redis":   func(c *corev1.Container) { c.VolumeMounts[2].Name = "own" },
	}
	for name, forge := range forgeries {
		t.Run(name, func(t *testing.T) {
			pod := want.DeepCopy()
			forge(containerNamed(t, pod.Spec.InitContainers, AgentContainer))
			if diff := cmp.Diff(want, mustInject(t, pod, settings)); diff != "" {
				t.Errorf("put right (-want +got):\n%s", diff)
			}
		})
	}
}

// Nor is a gate, without which the app would start at once.
func TestForgedGateIsPutRight(t *testing.T) {
	settings := testSettings(t)
	want := mustInject(t, testPod(KeyMutex, "m"), settings)
	forgeries := map[string]func(*corev1.PodSpec){
		"another command": func(spec *corev1.PodSpec) { spec.InitContainers[2].Command = []string{"true"} },
		"a sidecar": func(spec *corev1.PodSpec) {
			spec.InitContainers[2].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		},
		"gone":        func(spec *corev1.PodSpec) { spec.InitContainers = spec.InitContainers[:2] },
		"moved ahead": func(spec *corev1.PodSpec) { slices.Reverse(spec.InitContainers) },
	}
	for name, forge := range forgeries {
		t.Run(name, func(t *testing.T) {
			pod := want.DeepCopy()
			forge(&pod.Spec)
			if diff := cmp.Diff(want, mustInject(t, pod, settings)); diff != "" {
				t.Errorf("put right (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGateNoneHasNoGate(t *testing.T) {
	pod := mustInject(t, testPod(KeyMutex, "m", KeyGate, "none"), testSettings(t))
	if diff := cmp.Diff([]string{InitContainer, AgentContainer}, names(pod.Spec.InitContainers)); diff != "" {
		t.Errorf("init containers (-want +got):\n%s", diff)
	}
}

// Cases bank-vaults PR#600 and vault-k8s#715: a fixed uid breaks OpenShift.
func TestCaseB47NoFixedUID(t *testing.T) {
	settings := testSettings(t)
	settings.Agent.OmitRunAsUser = true
	for name, tc := range map[string]struct {
		podUser *int64
		want    *int64
	}{
		"the platform chooses":              {nil, nil},
		"the pod's uid":                     {new(int64(1000)), nil},
		"never root, as the pod's apps are": {new(int64(0)), new(int64(65532))},
	} {
		t.Run(name, func(t *testing.T) {
			pod := testPod(KeyMutex, "m")
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: tc.podUser}
			for _, c := range mustInject(t, pod, settings).Spec.InitContainers {
				if diff := cmp.Diff(tc.want, c.SecurityContext.RunAsUser); diff != "" {
					t.Errorf("uid of %s (-want +got):\n%s", c.Name, diff)
				}
			}
		})
	}
}

// Cases istio#53920 and kuma#13791: the wrong place among the init containers.
func TestCaseB53PlaceAmongInitContainers(t *testing.T) {
	for order, want := range map[string][]string{
		"first": {InitContainer, AgentContainer, GateContainer, "one", "two"},
		"last":  {"one", "two", InitContainer, AgentContainer, GateContainer},
	} {
		pod := testPod(KeyMutex, "m", KeyOrder, order)
		pod.Spec.InitContainers = []corev1.Container{{Name: "one"}, {Name: "two"}}
		if diff := cmp.Diff(want, names(mustInject(t, pod, testSettings(t)).Spec.InitContainers)); diff != "" {
			t.Errorf("order %s (-want +got):\n%s", order, diff)
		}
	}
}

// Case bank-vaults#1338: the injected image is private.
func TestCaseB57PrivateImage(t *testing.T) {
	settings := testSettings(t)
	settings.Image = "registry.example/agent@sha256:" + "0000000000000000000000000000000000000000000000000000000000000000"
	settings.ImagePullPolicy = corev1.PullAlways
	settings.ImagePullSecrets = []string{"own", "registry"}
	pod := testPod(KeyMutex, "m")
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "own"}}

	pod = mustInject(t, pod, settings)
	want := []corev1.LocalObjectReference{{Name: "own"}, {Name: "registry"}}
	if diff := cmp.Diff(want, pod.Spec.ImagePullSecrets); diff != "" {
		t.Errorf("pull secrets (-want +got):\n%s", diff)
	}
	for _, c := range pod.Spec.InitContainers {
		if c.Image != settings.Image || c.ImagePullPolicy != corev1.PullAlways {
			t.Errorf("%s: image %s, pull policy %s; want those of the settings", c.Name, c.Image, c.ImagePullPolicy)
		}
	}
}

func names(containers []corev1.Container) []string {
	var out []string
	for _, c := range containers {
		out = append(out, c.Name)
	}
	return out
}

// Go prepares for each processor of the node before the program's first line, so
// only the environment can keep an agent small on a large node.
func TestWhatWaitsIsToldOfOneProcessor(t *testing.T) {
	settings := testSettings(t)
	processors := func(c *corev1.Container) []string {
		var values []string
		for _, e := range c.Env {
			if e.Name == "GOMAXPROCS" {
				values = append(values, e.Value)
			}
		}
		return values
	}
	for _, name := range []string{AgentContainer, GateContainer} {
		t.Run(name, func(t *testing.T) {
			pod := mustInject(t, testPod(KeyMutex, "m"), settings)
			c := containerNamed(t, pod.Spec.InitContainers, name)
			if diff := cmp.Diff([]string{"1"}, processors(c)); diff != "" {
				t.Errorf("GOMAXPROCS (-want +got):\n%s", diff)
			}
			c.Env[len(c.Env)-1].Value = "4" // as someone else has decided since
			pod = mustInject(t, pod, settings)
			if diff := cmp.Diff([]string{"4"}, processors(containerNamed(t, pod.Spec.InitContainers, name))); diff != "" {
				t.Errorf("GOMAXPROCS of another, after the second pass (-want +got):\n%s", diff)
			}
		})
	}
}
