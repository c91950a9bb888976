package inject

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Cases vault-k8s#377 and consul-k8s#4441: a pod that meets the standard
// "restricted" does not meet it any more with its sidecar.
func TestCaseB46RestrictedStaysRestricted(t *testing.T) {
	unsetUID := testSettings(t)
	unsetUID.Agent.OmitRunAsUser = true
	for name, settings := range map[string]*Settings{"defaults": testSettings(t), "uid left to the platform": unsetUID} {
		t.Run(name, func(t *testing.T) {
			pod := restrictedPod()
			if got := forbidden(t, pod); got != "" {
				t.Fatalf("the pod alone: %s", got)
			}
			if got := forbidden(t, mustInject(t, pod, settings)); got != "" {
				t.Errorf("with its agent: %s", got)
			}
		})
	}
}

// restrictedPod says of its one container what the standard wants to hear, and
// nothing of the pod as a whole, which could hide what ours lack.
func restrictedPod() *corev1.Pod {
	pod := testPod(KeyMutex, "m")
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		RunAsNonRoot:             new(true),
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	return pod
}

// forbidden is what the API server would say in a restricted namespace.
func forbidden(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
	if result.Allowed {
		return ""
	}
	return result.ForbiddenDetail()
}

func TestRootPodHasAgentThatIsNot(t *testing.T) {
	pod := testPod(KeyMutex, "m")
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(false)}
	for _, c := range mustInject(t, pod, testSettings(t)).Spec.InitContainers {
		if sc := c.SecurityContext; *sc.RunAsUser == 0 || !*sc.RunAsNonRoot {
			t.Errorf("%s: uid %d, runAsNonRoot %t", c.Name, *sc.RunAsUser, *sc.RunAsNonRoot)
		}
	}
}
