package apiserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// handoffOf is what the pod's agent is told of whom it may hand the lock over to.
func handoffOf(t *testing.T, pod *corev1.Pod) map[string]string {
	t.Helper()
	told := map[string]string{}
	for _, v := range agent(t, pod).Env {
		switch v.Name {
		case "HOLDFAST_HANDOFF", "HOLDFAST_WORKLOAD", "HOLDFAST_REPLICASET", "HOLDFAST_REVISION":
			told[v.Name] = v.Value
		}
	}
	return told
}

// controlled makes a ReplicaSet one of a controller of that kind, or of none.
func controlled(kind string, annotations map[string]string) func(*appsv1.ReplicaSet) {
	return func(rs *appsv1.ReplicaSet) {
		rs.Annotations, rs.OwnerReferences = annotations, nil
		if kind != "" {
			rs.OwnerReferences = []metav1.OwnerReference{owner("apps/v1", kind)}
		}
	}
}

// A pod is created moments after its ReplicaSet. The webhook, that has no more
// rights than config/ gives it, asks the API server whose it is.
func TestPodsKnowTheRevisionOfTheirReplicaSet(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	cases := map[string]struct {
		owner       string // kind of the ReplicaSet's controller, empty for none
		annotations map[string]string
		want        bool
	}{
		"of a Deployment":                       {"Deployment", map[string]string{deploymentRevision: "3"}, true},
		"of a Rollout":                          {"Rollout", map[string]string{"rollout.argoproj.io/revision": "3"}, true},
		"of a Deployment without any revision":  {"Deployment", nil, false},
		"of a ReplicaSet that nothing controls": {"", map[string]string{deploymentRevision: "3"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := c.newNamespace(t, nil)
			rs := c.newReplicaSet(t, namespace, "web-5d4f8", controlled(tc.owner, tc.annotations))
			want := map[string]string{}
			if tc.want {
				want = map[string]string{
					"HOLDFAST_HANDOFF": "rollout", "HOLDFAST_REVISION": "3",
					"HOLDFAST_REPLICASET": string(rs.UID), "HOLDFAST_WORKLOAD": string(rs.OwnerReferences[0].UID),
				}
			}
			for _, options := range []metav1.CreateOptions{{}, {DryRun: []string{metav1.DryRunAll}}} {
				pod, err := c.CoreV1().Pods(namespace).Create(t.Context(), newPod(mutex, of(rs)), options)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, handoffOf(t, pod)); diff != "" {
					t.Errorf("the agent is told, dry run %v (-want +got):\n%s", options.DryRun, diff)
				}
			}
			_, err := c.create(t, namespace, newPod(map[string]string{"holdfast.dev/mutex": "m", "holdfast.dev/handoff": "rollout"}, of(rs)))
			if tc.want != (err == nil) || err != nil && !strings.Contains(err.Error(), "metadata.annotations[holdfast.dev/handoff]") {
				t.Errorf("asked for explicitly: %v", err)
			}
		})
	}
}

// Who makes pods tries again after such an answer.
func TestPodWhoseReplicaSetCannotBeReadIsDeniedForNow(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	rs := c.newReplicaSet(t, namespace, "web-5d4f8")
	missing, replaced := rs.DeepCopy(), rs.DeepCopy()
	missing.Name, replaced.UID = "web-77b6c", "0b5c3a52-7a0e-4d0e-9f6a-5d7c1c1f6c11"
	for name, tc := range map[string]struct {
		owner *appsv1.ReplicaSet
		want  string
	}{
		"it is not there":                        {missing, `ReplicaSet "` + namespace + `/web-77b6c": replicasets.apps "web-77b6c" not found`},
		"another one is there, of the same name": {replaced, `ReplicaSet "` + namespace + `/web-5d4f8": it was replaced`},
	} {
		_, err := c.create(t, namespace, newPod(mutex, of(tc.owner)))
		if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want 503 with %s", name, err, tc.want)
		}
	}
	off := map[string]string{"holdfast.dev/mutex": "m", "holdfast.dev/handoff": "off"}
	if diff := cmp.Diff(map[string]string{}, handoffOf(t, c.mustCreate(t, namespace, newPod(off, of(missing))))); diff != "" {
		t.Errorf("with handoff off the agent is told (-want +got):\n%s", diff)
	}
}
