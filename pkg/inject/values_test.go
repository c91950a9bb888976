package inject

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestBadValues has bad values of every key, with the whole message of each.
func TestBadValues(t *testing.T) {
	long := strings.Repeat("a", 201)
	stop := []string{KeyMutex, "m"}
	notify := []string{KeyMutex, "m", KeyOnLost, "notify"}
	execGate := []string{KeyMutex, "m", KeyGate, "exec"}
	none := []string{KeyMutex, "m", KeyGate, "none"}
	semaphore := []string{KeySemaphore, "s"}

	const (
		grammar  = `use only a-z, 0-9, ".", "_", "-", "/", with a letter or digit at both ends`
		permits  = "must be a whole number from 1 to 100000"
		notTime  = `is not a duration: write whole seconds, such as "30s"`
		stopTTL  = "must be from 20s to 60s; from 5s with holdfast.dev/on-lost: notify"
		tellTTL  = "must be from 5s to 60s"
		timeout  = "must be from 1s to 168h"
		priority = "must be a whole number from -100 to 100"
		noGate   = "with holdfast.dev/gate: none the app runs whether the lock is free or not, and nothing could fail: remove this key, the app can ask for itself"
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
			{stop, "FAIL", `must be "wait", "fail" or "skip"`},
			{none, "fail", noGate},
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
			{[]string{KeyMutex, "m", KeyOnBusy, "fail"}, "30s", "goes only with holdfast.dev/on-busy: wait"},
			{append(none, KeyOnBusy, "wait"), "30s", noGate},
			{none, "30s", noGate},
		},
		KeyOnLost: {
			{stop, "ignore", `must be "stop" or "notify"`},
			{stop, "", `must be "stop" or "notify"`},
		},
		KeyHandoff: {
			{stop, "on", `must be "rollout" or "off"`},
			{notify, "rollout", "goes only with holdfast.dev/on-lost: stop, since a holder that yields is stopped: remove one of the two"},
			{[]string{KeyMutex, "m", KeyGate, "none"}, "rollout", "goes only with holdfast.dev/gate: start, since without a gate a new pod is ready at once: remove the key"},
			{[]string{KeyMutex, "m", KeyOnBusy, "fail"}, "rollout", "goes only with holdfast.dev/on-busy: wait, since a pod that does not wait cannot be handed a lock: remove one of the two"},
			{[]string{KeyMutex, "m", KeyWaitTimeout, "29s"}, "rollout", "goes only with a holdfast.dev/wait-timeout of at least the ttl, which is 30s: the holder would be stopped for a pod that has given up"},
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
			{append(execGate, KeyStopGrace, "20s"), "30s", "too short to stop this pod's containers in time: use 52s or more"},
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
			{stop, "", `must be a quantity from "1m" to "2"`},
			{stop, "0", `must be a quantity from "1m" to "2"`},
			{stop, "-1", `must be a quantity from "1m" to "2"`},
			{stop, "3", `must be a quantity from "1m" to "2"`},
			{stop, "1 core", `must be a quantity from "1m" to "2"`},
		},
		KeyAgentMemory: {
			{stop, "", `must be a quantity from "16Mi" to "1Gi"`},
			{stop, "1Mi", `must be a quantity from "16Mi" to "1Gi"`},
			{stop, "2Gi", `must be a quantity from "16Mi" to "1Gi"`},
			{stop, "16MB", `must be a quantity from "16Mi" to "1Gi"`},
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
