package config

import (
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Case istio#35271: pods that want nothing of the webhook still wait for it.
func TestCaseB40OnlyOurPodsReachTheWebhook(t *testing.T) {
	type object = map[string]any
	pod := func(metadata object, init ...any) object {
		spec := object{"containers": []any{object{"name": "app"}}}
		if init != nil {
			spec["initContainers"] = init
		}
		return object{"metadata": metadata, "spec": spec}
	}
	tests := map[string]struct {
		pod  object
		want bool
	}{
		"no annotations":         {pod(object{}), false},
		"others' annotations":    {pod(object{"annotations": object{"example.com/mutex": "m", "x.holdfast.dev/mutex": "m"}}), false},
		"others' init container": {pod(object{}, object{"name": "fetch"}), false},
		"a lock":                 {pod(object{"annotations": object{"holdfast.dev/mutex": "m"}}), true},
		"a key with a typo":      {pod(object{"annotations": object{"holdfast.dev/mutx": "m"}}), true},
		"only our label":         {pod(object{"labels": object{"holdfast.dev/injected": "true"}}), true},
		"only our agent":         {pod(object{}, object{"name": "holdfast-agent"}), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := matches(t, tc.pod); got != tc.want {
				t.Errorf("reaches the webhook: %t, want %t", got, tc.want)
			}
		})
	}
}

// matches evaluates the conditions as an API server does. They use nothing of
// what Kubernetes adds to the language.
func matches(t *testing.T, object map[string]any) bool {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range only[*admissionregistrationv1.MutatingWebhookConfiguration](t, "*.yaml").Webhooks[0].MatchConditions {
		ast, issues := env.Compile(condition.Expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", condition.Name, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := program.Eval(map[string]any{"object": object})
		if err != nil {
			t.Fatalf("%s: %v", condition.Name, err)
		}
		if out.Value() != true {
			return false
		}
	}
	return true
}
