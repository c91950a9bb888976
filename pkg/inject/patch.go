package inject

import (
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// Why not the difference of two typed pods, as admission webhooks usually send:
// a field that our Kubernetes version does not know is lost on the way through
// the type, and a difference by position then leaves it on the wrong container
// when one is inserted before. So the changes are carried over to the pod as it
// was sent.

// carryOver applies to raw what has changed from before to after, which were
// decoded from it. It answers with the whole pod.
func carryOver(raw []byte, before, after *corev1.Pod) ([]byte, error) {
	var sent any
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, fmt.Errorf("pod: %w", err)
	}
	from, err := untyped(before)
	if err != nil {
		return nil, err
	}
	to, err := untyped(after)
	if err != nil {
		return nil, err
	}
	return json.Marshal(carry(sent, from, to))
}

func untyped(pod *corev1.Pod) (any, error) {
	text, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	var value any
	return value, json.Unmarshal(text, &value)
}

// carry answers with sent, changed as from was changed to to.
func carry(sent, from, to any) any {
	if reflect.DeepEqual(from, to) {
		return sent
	}
	switch to := to.(type) {
	case map[string]any:
		sent, ok1 := sent.(map[string]any)
		from, ok2 := from.(map[string]any)
		if ok1 && ok2 {
			return carryMap(sent, from, to)
		}
	case []any:
		sent, ok1 := sent.([]any)
		from, ok2 := from.([]any)
		if ok1 && ok2 && len(sent) == len(from) {
			return carryList(sent, from, to)
		}
	}
	return to
}

func carryMap(sent, from, to map[string]any) map[string]any {
	out := make(map[string]any, len(sent)+len(to))
	for key, value := range sent {
		if _, was := from[key]; was {
			if _, is := to[key]; !is {
				continue // removed
			}
		}
		out[key] = value
	}
	for key, value := range to {
		switch old, was := from[key]; {
		case !was:
			out[key] = value
		case !reflect.DeepEqual(old, value):
			out[key] = carry(sent[key], old, value)
		}
	}
	return out
}

// carryList finds for each new element the old one that it came from: an equal
// one, or one of the same name.
func carryList(sent, from, to []any) []any {
	used := make([]bool, len(from))
	find := func(match func(any) bool) int {
		for i, old := range from {
			if !used[i] && match(old) {
				used[i] = true
				return i
			}
		}
		return -1
	}
	out := make([]any, len(to))
	origin := make([]int, len(to))
	for j, value := range to { // equals first, so that they are not taken for another of the same name
		origin[j] = find(func(old any) bool { return reflect.DeepEqual(old, value) })
	}
	for j, value := range to {
		if origin[j] < 0 {
			origin[j] = find(func(old any) bool { return name(old) != "" && name(old) == name(value) })
		}
		if i := origin[j]; i >= 0 {
			out[j] = carry(sent[i], from[i], value)
		} else {
			out[j] = value
		}
	}
	return out
}

func name(element any) string {
	object, _ := element.(map[string]any)
	s, _ := object["name"].(string)
	return s
}
