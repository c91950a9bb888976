package inject

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxMessage is what one reads in a terminal or an event, after the field's path.
const maxMessage = 200

// messages is what a user sees, one line for each error.
func messages(t testing.TB, errs field.ErrorList) []string {
	t.Helper()
	var out []string
	for _, err := range errs {
		if n := len(err.ErrorBody()); n > maxMessage {
			t.Errorf("message has %d characters, at most %d are readable: %s", n, maxMessage, err)
		}
		out = append(out, err.Error())
	}
	return out
}

func parse(t testing.TB, pod *corev1.Pod) (*Request, []string) {
	t.Helper()
	req, errs := Parse(&pod.ObjectMeta, &pod.Spec, testNamespace, testSettings(t))
	return req, messages(t, errs)
}

func TestMissingKeys(t *testing.T) {
	tests := map[string]struct {
		annotations []string
		want        []string
	}{
		"a semaphore without permits": {
			[]string{KeySemaphore, "s"},
			[]string{`metadata.annotations[holdfast.dev/permits]: Required value: a semaphore needs the number of pods that may hold it at once, such as "2"`},
		},
		"no lock but another key": {
			[]string{KeyTTL, "30s"},
			[]string{`metadata.annotations[holdfast.dev/mutex]: Required value: the other holdfast.dev keys name no lock: add holdfast.dev/mutex, or holdfast.dev/semaphore with holdfast.dev/permits`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, got := parse(t, testPod(tc.annotations...))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownKeys(t *testing.T) {
	const seeDocs = "unknown key: remove it, or see docs/annotations.md for the keys that there are"
	tests := map[string]string{
		"holdfast.dev/mutx":     "unknown key: did you mean holdfast.dev/mutex?",
		"holdfast.dev/Mutex":    "unknown key: did you mean holdfast.dev/mutex?",
		"holdfast.dev/permit":   "unknown key: did you mean holdfast.dev/permits?",
		"holdfast.dev/on_lost":  "unknown key: did you mean holdfast.dev/on-lost?",
		"holdfast.dev/":         seeDocs,
		"holdfast.dev/enabled":  seeDocs,
		"holdfast.dev/injected": seeDocs, // a label, but no annotation
	}
	for key, want := range tests {
		t.Run(key, func(t *testing.T) {
			_, got := parse(t, testPod(KeyMutex, "m", key, "x"))
			if diff := cmp.Diff([]string{field.Invalid(annotationPath(key), "x", want).Error()}, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotSupportedYet(t *testing.T) {
	tests := map[string]struct {
		annotations []string
		want        string
	}{
		"gate exec":     {[]string{KeyGate, "exec"}, `[holdfast.dev/gate]: Forbidden: "exec" is not supported yet: remove the key, which means "start"`},
		"redis profile": {[]string{KeyRedis, "default"}, `[holdfast.dev/redis]: Forbidden: is not supported yet: remove it`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			req, got := parse(t, testPod(append(tc.annotations, KeyMutex, "m")...))
			if diff := cmp.Diff([]string{"metadata.annotations" + tc.want}, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if req != nil {
				t.Error("there is a request beside the errors")
			}
		})
	}
}

// Who is told only that a key needs gate: exec would set it, and be refused again.
func TestNotSupportedYetIsSaidBesideWhatIsWrong(t *testing.T) {
	tests := map[string]struct{ key, value, want string }{
		"on-busy skip": {KeyOnBusy, "skip", `[holdfast.dev/on-busy]: Forbidden: "skip" is not supported yet: remove the key, which means "wait"`},
		"stop-grace":   {KeyStopGrace, "5s", `[holdfast.dev/stop-grace]: Forbidden: is not supported yet: remove it`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, got := parse(t, testPod(KeyMutex, "m", tc.key, tc.value))
			want := []string{field.Invalid(annotationPath(tc.key), tc.value, "goes only with holdfast.dev/gate: exec").Error(), "metadata.annotations" + tc.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEverythingWrongAtOnce(t *testing.T) {
	_, got := parse(t, testPod(KeySemaphore, "S", KeyPermits, "0", KeyTTL, "30", KeyPriority, "x", Prefix+"foo", "bar", KeyRedis, "default"))
	var keys []string
	for _, m := range got {
		key, _, _ := strings.Cut(strings.TrimPrefix(m, "metadata.annotations["), "]")
		keys = append(keys, key)
	}
	want := []string{KeySemaphore, KeyPermits, KeyTTL, KeyPriority, Prefix + "foo", KeyRedis}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys complained about (-want +got):\n%s", diff)
	}
}

func TestScopeClusterOnlyWhereAllowed(t *testing.T) {
	pod := testPod(KeyMutex, "m", KeyScope, "cluster")
	settings := testSettings(t)

	req, errs := Parse(&pod.ObjectMeta, &pod.Spec, testNamespace, settings)
	if len(errs) > 0 || req.Agent.Resource != "cluster:m" {
		t.Errorf("in a namespace that may: got %+v, %v", req, errs)
	}
	_, errs = Parse(&pod.ObjectMeta, &pod.Spec, "other", settings)
	want := []string{`metadata.annotations[holdfast.dev/scope]: Invalid value: "cluster": namespace "other" may not use it: ask the platform team to list it in clusterScopeNamespaces`}
	if diff := cmp.Diff(want, messages(t, errs)); diff != "" {
		t.Errorf("in another (-want +got):\n%s", diff)
	}
}

func TestLockNames(t *testing.T) {
	pod := testPod("team", "blue", KeyMutex, "")
	pod.Labels = map[string]string{"app.kubernetes.io/name": "etl"}
	tests := map[string]string{
		"a":                                  "jobs/a",
		"a.b_c-d/e0":                         "jobs/a.b_c-d/e0",
		strings.Repeat("a", 200):             "jobs/" + strings.Repeat("a", 200),
		"{label:app.kubernetes.io/name}":     "jobs/etl",
		"x/{annotation:team}/{namespace}":    "jobs/x/blue/jobs",
		"{serviceaccount}":                   "jobs/default",
		"{annotation:team}{annotation:team}": "jobs/blueblue",
	}
	for template, want := range tests {
		t.Run(shorten(template), func(t *testing.T) {
			pod.Annotations[KeyMutex] = template
			req, got := parse(t, pod)
			if len(got) > 0 {
				t.Fatalf("denied: %q", got)
			}
			if req.Agent.Resource != want {
				t.Errorf("resource %q, want %q", req.Agent.Resource, want)
			}
		})
	}
}

func TestPodsThatAskForNothing(t *testing.T) {
	tests := map[string]*corev1.Pod{
		"no annotations":           testPod(),
		"others' annotations":      testPod("example.com/mutex", "m", "holdfast.development/mutex", "m", "x.holdfast.dev/mutex", "m"),
		"a status that means none": testPod(KeyStatus, "injected"),
	}
	for name, pod := range tests {
		t.Run(name, func(t *testing.T) {
			if req, got := parse(t, pod); req != nil || got != nil {
				t.Errorf("got request %+v, errors %q; want neither", req, got)
			}
		})
	}
}

func TestAgentWithoutLockIsDenied(t *testing.T) {
	pod := mustInject(t, testPod(KeyMutex, "m"), testSettings(t))
	delete(pod.Annotations, KeyMutex)
	_, got := parse(t, pod)
	want := []string{`metadata.annotations[holdfast.dev/mutex]: Required value: the pod has a container holdfast-agent but names no lock: add holdfast.dev/mutex or holdfast.dev/semaphore, or remove the container`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}
