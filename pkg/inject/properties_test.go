package inject

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// anyPod draws a pod that can be injected: any containers, volumes and settings
// of its own, and annotations that are valid most of the time.
func anyPod(t *rapid.T) *corev1.Pod {
	pod := testPod()
	spec := &pod.Spec
	spec.Containers = anyContainers(t, "app", 1, 3)
	spec.InitContainers = anyContainers(t, "init", 0, 3)
	for i := range spec.InitContainers {
		if rapid.Bool().Draw(t, "native sidecar") {
			spec.InitContainers[i].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
	}
	spec.Volumes = []corev1.Volume{{Name: "data"}, {Name: "more"}}[:rapid.IntRange(0, 2).Draw(t, "volumes")]
	spec.HostNetwork = rapid.IntRange(0, 20).Draw(t, "host network") == 0
	if rapid.Bool().Draw(t, "pod-level resources") {
		spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2")}}
	}
	pod.Labels = map[string]string{"tenant": rapid.SampledFrom([]string{"acme", "ACME", ""}).Draw(t, "tenant")}
	annotate(t, pod)
	return pod
}

func anyContainers(t *rapid.T, prefix string, least, most int) []corev1.Container {
	containers := make([]corev1.Container, rapid.IntRange(least, most).Draw(t, prefix))
	for i := range containers {
		c := &containers[i]
		c.Name, c.Image = prefix+string(rune('a'+i)), "busybox"
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"A", "B", "PATH"}), 0, 4).Draw(t, "variables") {
			c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: rapid.String().Draw(t, "value")}) // names may repeat
		}
		for _, path := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/a", "/var/run", "/b"}), 0, 3, rapid.ID).Draw(t, "mounts") {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: path})
		}
		if rapid.Bool().Draw(t, "limits") {
			c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("64Mi")}
		}
	}
	return containers
}

// annotate draws a lock and some of the other keys, each with one of its values.
func annotate(t *rapid.T, pod *corev1.Pod) {
	pod.Annotations = map[string]string{KeyMutex: rapid.SampledFrom([]string{"m", "a/b", "{label:tenant}-x"}).Draw(t, "mutex")}
	if rapid.Bool().Draw(t, "semaphore") {
		pod.Annotations = map[string]string{KeySemaphore: "s", KeyPermits: rapid.SampledFrom([]string{"1", "100000"}).Draw(t, "permits")}
	}
	values := map[string][]string{
		KeyScope:       {"namespace", "cluster"},
		KeyGate:        {"start", "none", "exec"},
		KeyOnBusy:      {"wait", "fail"},
		KeyWaitTimeout: {"1s", "168h"},
		KeyOnLost:      {"stop", "notify"},
		KeyTTL:         {"5s", "20s", "30s", "60s"},
		KeyPriority:    {"-100", "0", "100"},
		KeyOrder:       {"first", "last"},
		KeyContainers:  {"appa", "appb"},
		KeyAgentCPU:    {"5m", "1"},
		KeyAgentMemory: {"16Mi", "64Mi"},
		KeyAgentPort:   {"1024", "65534"},
		KeyStatus:      {"injected", "x"},
		KeyHandoff:     {"off", "rollout"},
		Prefix + "x":   {"y"},
	}
	for _, a := range Annotations {
		if choices := values[a.Key]; choices != nil && rapid.IntRange(0, 3).Draw(t, a.Key) == 0 {
			pod.Annotations[a.Key] = rapid.SampledFrom(choices).Draw(t, a.Key)
		}
	}
}

// anyInjected draws a pod and injects it; pods that are denied are drawn anew.
func anyInjected(t *rapid.T, settings *Settings) (before, after *corev1.Pod) {
	before = anyPod(t)
	req, errs := Parse(&before.ObjectMeta, &before.Spec, testNamespace, settings)
	if len(errs) > 0 {
		t.Skip("denied")
	}
	after = before.DeepCopy()
	Mutate(after, req, settings)
	return before, after
}

func TestPropertyIdempotent(t *testing.T) {
	settings := testSettings(t)
	rapid.Check(t, func(t *rapid.T) {
		_, once := anyInjected(t, settings)
		req, errs := Parse(&once.ObjectMeta, &once.Spec, testNamespace, settings)
		if len(errs) > 0 {
			t.Fatalf("what was injected is denied: %v", errs.ToAggregate())
		}
		twice := once.DeepCopy()
		Mutate(twice, req, settings)
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Fatalf("second pass (-once +twice):\n%s", diff)
		}
	})
}

// With all that is ours taken away again, the user's pod is left as it was, in
// the order in which it was.
func TestPropertyAdditive(t *testing.T) {
	settings := testSettings(t)
	rapid.Check(t, func(t *rapid.T) {
		before, after := anyInjected(t, settings)
		takeAway(after, settings)
		delete(before.Annotations, KeyStatus)
		if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the user's pod (-before +after):\n%s", diff)
		}
	})
}

func takeAway(pod *corev1.Pod, settings *Settings) {
	ours := func(c corev1.Container) bool { return reservedContainers.Has(c.Name) }
	spec := &pod.Spec
	spec.InitContainers = slices.DeleteFunc(spec.InitContainers, ours)
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return reservedVolumes.Has(v.Name) })
	spec.ImagePullSecrets = slices.DeleteFunc(spec.ImagePullSecrets, func(r corev1.LocalObjectReference) bool { return slices.Contains(settings.ImagePullSecrets, r.Name) })
	delete(pod.Labels, LabelInjected)
	delete(pod.Annotations, KeyStatus)
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == agentenv.URLVar || e.Name == agentenv.DirVar })
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == RunVolume })
	}
}

// What Mutate writes, the agent can read, and it means what Parse understood.
func TestPropertyAgentUnderstands(t *testing.T) {
	settings := testSettings(t)
	rapid.Check(t, func(rt *rapid.T) {
		before, after := anyInjected(rt, settings)
		req, _ := Parse(&before.ObjectMeta, &before.Spec, testNamespace, settings)
		got := told(t, after)
		want := req.Agent
		want.Redis, want.Listen, want.ProbeListen, want.Pod = got.Redis, got.Listen, got.ProbeListen, got.Pod // not in the request
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("what the agent reads (-parsed +told):\n%s", diff)
		}
		if got.Margin > got.TTL/2 {
			rt.Fatalf("margin %s is more than half of ttl %s", got.Margin, got.TTL)
		}
	})
}

// Parse answers with a request or with errors, for any annotations whatever.
func TestPropertyParseTakesAnything(t *testing.T) {
	settings := testSettings(t)
	keys := []string{"holdfast.dev/", "holdfast.dev/unknown", "other"}
	for _, a := range Annotations {
		keys = append(keys, a.Key)
	}
	value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[{}a-z0-9./:_-]{0,12}`), rapid.SampledFrom([]string{"", "30s", "1", "exec", "stop", "app"}))
	rapid.Check(t, func(t *rapid.T) {
		pod := anyPod(t)
		pod.Annotations = rapid.MapOf(rapid.SampledFrom(keys), value).Draw(t, "annotations")
		checkParse(t, pod, settings)
	})
}

func FuzzParse(f *testing.F) {
	f.Add(KeyMutex, "nightly-etl", KeyTTL, "30s")
	f.Add(KeySemaphore, "{label:a}/{namespace}", KeyPermits, "5")
	f.Add(KeyGate, "none", "holdfast.dev/\x00", "{{}")
	f.Add(KeyMutex, "{annotation:t}", "t", strings.Repeat("\x00", 99))
	f.Add(KeyMutex, "m", KeyContainers, strings.Repeat("\U0001f512", 99))
	settings := testSettings(f)
	f.Fuzz(func(t *testing.T, key1, value1, key2, value2 string) {
		checkParse(t, testPod(key1, value1, key2, value2), settings)
	})
}

// checkParse parses, and mutates if it may.
func checkParse(t interface{ Fatalf(string, ...any) }, pod *corev1.Pod, settings *Settings) {
	req, errs := Parse(&pod.ObjectMeta, &pod.Spec, testNamespace, settings)
	asked := slices.ContainsFunc(slices.Collect(maps.Keys(pod.Annotations)), func(key string) bool {
		return strings.HasPrefix(key, Prefix) && key != KeyStatus
	})
	switch {
	case req != nil && len(errs) > 0:
		t.Fatalf("a request and errors: %+v, %v", req, errs)
	case asked && req == nil && len(errs) == 0:
		t.Fatalf("neither a request nor an error for %v", pod.Annotations)
	case !asked && (req != nil || len(errs) > 0):
		t.Fatalf("nothing was asked for, but got %+v, %v", req, errs)
	}
	for _, err := range errs {
		if n := len(err.ErrorBody()); n > maxMessage {
			t.Fatalf("message has %d characters: %s", n, err)
		}
	}
	if req != nil {
		Mutate(pod, req, settings)
	}
}
