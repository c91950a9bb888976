package inject

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// carried injects the pod in raw and answers with what the API server would have
// after the patch.
func carried(t *testing.T, raw string) string {
	t.Helper()
	var before corev1.Pod
	if err := json.Unmarshal([]byte(raw), &before); err != nil {
		t.Fatal(err)
	}
	after := mustInject(t, &before, testSettings(t))
	out, err := carryOver([]byte(raw), &before, after)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Cases azure-workload-identity#1312 and berglas#264: fields that the webhook's
// Kubernetes version does not know are dropped, or end up on another container.
func TestCaseB33UnknownFieldsSurviveWhereTheyWere(t *testing.T) {
	const raw = `{
		"apiVersion": "v1", "kind": "Pod", "newTop": {"a": 1},
		"metadata": {"name": "etl", "newMeta": true, "annotations": {"holdfast.dev/mutex": "m"}},
		"spec": {
			"newSpec": [1, 2],
			"initContainers": [{"name": "fetch", "image": "busybox", "newInit": 1}],
			"containers": [
				{"name": "app", "image": "busybox", "newApp": 2, "env": [{"name": "A", "newEnv": 3}, {"name": "A", "value": "again", "newEnv": 4}]},
				{"name": "log", "image": "busybox", "newLog": 5}
			],
			"volumes": [{"name": "data", "newSource": {"x": "y"}}]
		}}`
	out := carried(t, raw)

	type object = map[string]any
	var got struct {
		NewTop   any `json:"newTop"`
		Metadata struct {
			NewMeta any `json:"newMeta"`
		} `json:"metadata"`
		Spec struct {
			NewSpec                    any `json:"newSpec"`
			InitContainers, Containers []object
			Volumes                    []object
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{object{"a": 1.0}, true, []any{1.0, 2.0}}, []any{got.NewTop, got.Metadata.NewMeta, got.Spec.NewSpec}); diff != "" {
		t.Errorf("unknown fields of the pod (-want +got):\n%s", diff)
	}
	unknown := func(list []object, key string) []any {
		var values []any
		for _, o := range list {
			values = append(values, o[key])
		}
		return values
	}
	lists := map[string]struct{ want, got []any }{
		"init containers": {[]any{nil, nil, nil, 1.0}, unknown(got.Spec.InitContainers, "newInit")},
		"apps":            {[]any{2.0, nil}, unknown(got.Spec.Containers, "newApp")},
		"other app":       {[]any{nil, 5.0}, unknown(got.Spec.Containers, "newLog")},
		"volumes":         {[]any{object{"x": "y"}, nil, nil, nil}, unknown(got.Spec.Volumes, "newSource")},
	}
	for name, tc := range lists {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("unknown field of %s (-want +got):\n%s", name, diff)
		}
	}
	var env []any
	for _, e := range got.Spec.Containers[0]["env"].([]any) {
		env = append(env, e.(object)["newEnv"])
	}
	if diff := cmp.Diff([]any{3.0, 4.0, nil, nil}, env); diff != "" {
		t.Errorf("unknown field of variables of one name (-want +got):\n%s", diff)
	}
}

// Of two elements with one name, the one that goes takes its unknown fields
// along.
func TestCarryTellsElementsOfOneNameApart(t *testing.T) {
	type object = map[string]any
	sent := []any{object{"name": "A", "value": "1", "new": 1}, object{"name": "A", "value": "2", "new": 2}}
	from := []any{object{"name": "A", "value": "1"}, object{"name": "A", "value": "2"}}
	to := []any{object{"name": "A", "value": "3"}, object{"name": "A", "value": "2"}}
	want := []any{object{"name": "A", "value": "3", "new": 1}, object{"name": "A", "value": "2", "new": 2}}
	if diff := cmp.Diff(any(want), carry(sent, from, to)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any(want[1:]), carry(sent, from, to[1:])); diff != "" {
		t.Errorf("one removed (-want +got):\n%s", diff)
	}
}

// Without unknown fields, what is carried over is what Mutate has made.
func TestPropertyCarryOver(t *testing.T) {
	settings := testSettings(t)
	rapid.Check(t, func(t *rapid.T) {
		before, after := anyInjected(t, settings)
		raw, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		out, err := carryOver(raw, before, after)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(after)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decoded(t, want), decoded(t, out)); diff != "" {
			t.Fatalf("carried over (-want +got):\n%s", diff)
		}
	})
}

func decoded(t *rapid.T, text []byte) any {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
