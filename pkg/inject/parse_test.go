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

// TestBadValues has bad values of every key, with the whole message of each.
func TestBadValues(t *testing.T) {
	long := strings.Repeat("a", 201)
	stop := []string{KeyMutex, "m"}
	notify := []string{KeyMutex, "m", KeyOnLost, "notify"}
	execGate := []string{KeyMutex, "m", KeyGate, "exec"}
	semaphore := []string{KeySemaphore, "s"}

	const (
		grammar  = `use only a-z, 0-9, ".", "_", "-", "/", with a letter or digit at both ends`
		permits  = "must be a whole number from 1 to 100000"
		notTime  = `is not a duration: write whole seconds, such as "30s"`
		stopTTL  = "must be from 20s to 60s; from 5s with holdfast.dev/on-lost: notify"
		tellTTL  = "must be from 5s to 60s"
		timeout  = "must be from 1s to 168h"
		priority = "must be a whole number from -100 to 100"
		port     = "must be a whole number from 1024 to 65534"
	)
	values := map[string][]struct {
		with  []string // other annotations
		value string
		want  string
	}{
		KeyMutex: {
			{nil, "", `must not be empty: name the lock, such as "nightly-etl"`},
			{nil, long, "has 201 characters: use at most 200"},
			{nil, "Nightly", grammar},
			{nil, "nightly etl", grammar},
			{nil, "a{b", grammar},
			{nil, "a}b", grammar},
			{nil, "-a", grammar},
			{nil, "a/", grammar},
			{nil, "ä", grammar},
			{nil, "a\nb", grammar},
			{nil, "..", grammar},
			{nil, "a/../b", `must not contain ".." or "//"`},
			{nil, "a//b", `must not contain ".." or "//"`},
			{nil, "{label:tenant}", `the pod has no label "tenant": add it, or change the template`},
			{nil, "{annotation:tenant}", `the pod has no annotation "tenant": add it, or change the template`},
			{nil, "{pod}", "knows only {label:K}, {annotation:K}, {namespace} and {serviceaccount}"},
			{nil, "{label:}", "knows only {label:K}, {annotation:K}, {namespace} and {serviceaccount}"},
			{nil, "{}", "knows only {label:K}, {annotation:K}, {namespace} and {serviceaccount}"},
			{[]string{"t", "a{namespace}"}, "x-{annotation:t}", `expands to "x-a{namespace}": ` + grammar},
			{[]string{"t", "{"}, "x-{annotation:t}-y", `expands to "x-{-y": ` + grammar},
			{[]string{"t", ""}, "{annotation:t}", `expands to "": must not be empty: name the lock, such as "nightly-etl"`},
			{[]string{"t", long}, "{annotation:t}", `expands to "` + strings.Repeat("a", 40) + `…": has 201 characters: use at most 200`},
			{[]string{"t", "b/.."}, "a/{annotation:t}/c", `expands to "a/b/../c": must not contain ".." or "//"`},
		},
		KeySemaphore: {
			{[]string{KeyPermits, "1"}, "", `must not be empty: name the lock, such as "nightly-etl"`},
			{[]string{KeyPermits, "1"}, "A", grammar},
			{[]string{KeyPermits, "1", KeyMutex, "m"}, "s", "holdfast.dev/mutex is set too: keep one of them"},
		},
		KeyPermits: {
			{semaphore, "", permits},
			{semaphore, "0", permits},
			{semaphore, "-1", permits},
			{semaphore, "1.5", permits},
			{semaphore, "1e9", permits},
			{semaphore, "100001", permits},
			{semaphore, " 1", permits},
			{semaphore, "99999999999999999999", permits},
			{stop, "1", "a mutex has one permit: remove this key, or use holdfast.dev/semaphore"},
		},
		KeyScope: {
			{stop, "", `must be "namespace" or "cluster"`},
			{stop, "Cluster", `must be "namespace" or "cluster"`},
		},
		KeyGate: {
			{stop, "", `must be "start", "exec" or "none"`},
			{stop, "off", `must be "start", "exec" or "none"`},
		},
		KeyOnBusy: {
			{stop, "retry", `must be "wait", "fail" or "skip"`},
			{stop, "skip", "goes only with holdfast.dev/gate: exec"},
		},
		KeyWaitTimeout: {
			{stop, "", notTime},
			{stop, "30", `lacks its unit: write "30s"`},
			{stop, "0s", timeout},
			{stop, "-1s", timeout},
			{stop, "1e9h", notTime},
			{stop, "169h", timeout},
			{stop, "1500ms", `must be whole seconds, such as "1s" or "2s"`},
			{[]string{KeyMutex, "m", KeyGate, "exec", KeyOnBusy, "skip"}, "30s", "goes only with holdfast.dev/on-busy: wait"},
		},
		KeyOnLost: {
			{stop, "ignore", `must be "stop" or "notify"`},
			{stop, "", `must be "stop" or "notify"`},
		},
		KeyHandoff: {
			{stop, "on", `must be "off" or "rollout"`},
		},
		KeyTTL: {
			{stop, "", notTime},
			{stop, "30", `lacks its unit: write "30s"`},
			{stop, "-1s", stopTTL},
			{stop, "19s", stopTTL},
			{stop, "61s", stopTTL},
			{stop, "0s", stopTTL},
			{stop, "1e9h", notTime},
			{stop, "9999999h", notTime},
			{stop, "20500ms", `must be whole seconds, such as "20s" or "21s"`},
			{stop, "half a minute", notTime},
			{notify, "4s", tellTTL},
			{notify, "61s", tellTTL},
			{[]string{KeyMutex, "m", KeyGate, "none"}, "4s", tellTTL},
			{append(execGate, KeyStopGrace, "20s"), "30s", "30s is too short to stop this pod's containers in time: use 52s or more"},
		},
		KeyStopGrace: {
			{execGate, "", notTime},
			{execGate, "5", `lacks its unit: write "5s"`},
			{execGate, "-1s", "must be from 1s to 23s"},
			{execGate, "0s", "must be from 1s to 23s"},
			{execGate, "24s", "must be from 1s to 23s"},
			{execGate, "1e9h", notTime},
			{execGate, "1500ms", `must be whole seconds, such as "1s" or "2s"`},
			{stop, "5s", "goes only with holdfast.dev/gate: exec"},
		},
		KeyPriority: {
			{stop, "", priority}, {stop, "-101", priority}, {stop, "101", priority}, {stop, "high", priority}, {stop, "1.0", priority},
		},
		KeyOrder:      {{stop, "", `must be "first" or "last"`}, {stop, "middle", `must be "first" or "last"`}},
		KeyProbe:      {{stop, "tcp", `must be "http" or "exec"`}},
		KeyContainers: {{stop, "", `no container "": choose from app`}, {stop, "app,web", `no container "web": choose from app`}, {stop, "app,", `no container "": choose from app`}},
		KeyRedis:      {{stop, "", `must be the name of a profile, such as "default"`}, {stop, "Big One", `must be the name of a profile, such as "default"`}},
		KeyAgentCPU: {
			{stop, "", `must be a quantity from "1m" to "2"`}, {stop, "0", `must be a quantity from "1m" to "2"`}, {stop, "-1", `must be a quantity from "1m" to "2"`},
			{stop, "3", `must be a quantity from "1m" to "2"`}, {stop, "1 core", `must be a quantity from "1m" to "2"`},
		},
		KeyAgentMemory: {
			{stop, "", `must be a quantity from "16Mi" to "1Gi"`}, {stop, "1Mi", `must be a quantity from "16Mi" to "1Gi"`},
			{stop, "2Gi", `must be a quantity from "16Mi" to "1Gi"`}, {stop, "16MB", `must be a quantity from "16Mi" to "1Gi"`},
		},
		KeyAgentPort: {{stop, "", port}, {stop, "80", port}, {stop, "65535", port}, {stop, "http", port}, {stop, "-8650", port}},
	}
	for _, a := range Annotations {
		if len(values[a.Key]) == 0 && a.Key != KeyStatus {
			t.Errorf("no bad values of %s", a.Key)
		}
	}
	for key, cases := range values {
		for _, tc := range cases {
			t.Run(strings.TrimPrefix(key, Prefix)+"="+shorten(tc.value), func(t *testing.T) {
				pod := testPod(append(append([]string(nil), tc.with...), key, tc.value)...)
				_, got := parse(t, pod)
				want := field.Invalid(annotationPath(key), shorten(tc.value), tc.want).Error()
				// What is not supported yet comes on top of what is wrong.
				got = withoutUnsupported(got)
				if diff := cmp.Diff([]string{want}, got); diff != "" {
					t.Errorf("messages (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func withoutUnsupported(messages []string) []string {
	var out []string
	for _, m := range messages {
		if !strings.Contains(m, "not supported yet") {
			out = append(out, m)
		}
	}
	return out
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
		"gate exec":       {[]string{KeyGate, "exec"}, `[holdfast.dev/gate]: Forbidden: "exec" is not supported yet: remove the key, which means "start"`},
		"on-busy fail":    {[]string{KeyOnBusy, "fail"}, `[holdfast.dev/on-busy]: Forbidden: "fail" is not supported yet: remove the key, which means "wait"`},
		"wait-timeout":    {[]string{KeyWaitTimeout, "10m"}, `[holdfast.dev/wait-timeout]: Forbidden: is not supported yet: remove it`},
		"handoff rollout": {[]string{KeyHandoff, "rollout"}, `[holdfast.dev/handoff]: Forbidden: "rollout" is not supported yet: remove the key, which means "off"`},
		"probe exec":      {[]string{KeyProbe, "exec"}, `[holdfast.dev/probe]: Forbidden: "exec" is not supported yet: remove the key, which means "http"`},
		"redis profile":   {[]string{KeyRedis, "default"}, `[holdfast.dev/redis]: Forbidden: is not supported yet: remove it`},
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

func TestEverythingWrongAtOnce(t *testing.T) {
	_, got := parse(t, testPod(KeySemaphore, "S", KeyPermits, "0", KeyTTL, "30", KeyPriority, "x", Prefix+"foo", "bar", KeyHandoff, "rollout"))
	var keys []string
	for _, m := range got {
		key, _, _ := strings.Cut(strings.TrimPrefix(m, "metadata.annotations["), "]")
		keys = append(keys, key)
	}
	want := []string{KeySemaphore, KeyPermits, KeyTTL, KeyPriority, Prefix + "foo", KeyHandoff}
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
