package inject

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// ownedBy is a controller of a pod.
func ownedBy(apiVersion, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "bystander", UID: "1"},
		{APIVersion: apiVersion, Kind: kind, Name: "web-5d4f8", UID: "2", Controller: new(true)},
	}
}

// ownedPod is made by a controller.
func ownedPod(owners []metav1.OwnerReference, pairs ...string) *corev1.Pod {
	pod := testPod(pairs...)
	pod.Name, pod.GenerateName, pod.OwnerReferences = "", "web-5d4f8-", owners
	return pod
}

// handoff is what an agent is told of it.
type handoff struct {
	Handoff              agentenv.Handoff
	Workload, ReplicaSet string
	Revision             int64
}

func handoffOf(t *testing.T, pod *corev1.Pod) handoff {
	t.Helper()
	c := told(t, pod)
	return handoff{c.Handoff, c.Workload, c.ReplicaSet, c.Revision}
}

// lookups answers with one owner, and notes what it was asked about.
type lookups struct {
	owner *Owner
	err   error
	asked []string
}

func (l *lookups) lookup(ctx context.Context, namespace string, ref metav1.OwnerReference) (*Owner, error) {
	until, ok := ctx.Deadline()
	if !ok || time.Until(until) > ownerTimeout {
		return nil, errors.New("without a time-out")
	}
	l.asked = append(l.asked, namespace+"/"+ref.Name)
	return l.owner, l.err
}

var web = &Owner{ReplicaSet: "2", Workload: "web", Revision: 3}

// admit sends the pod as a controller's, and applies what comes back.
func admit(t *testing.T, l *lookups, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	response := newAPIServerWith(t, l.lookup).review(t, reviewOf(t, string(raw)))
	if !response.Allowed {
		t.Fatalf("denied: %+v", response.Result)
	}
	if len(response.Patch) > 0 {
		raw = patched(t, raw, response.Patch)
	}
	var got corev1.Pod
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	return &got
}

func TestHandoffGoesWithADeployment(t *testing.T) {
	replicaSet := ownedBy("apps/v1", "ReplicaSet")
	yes, off := handoff{agentenv.HandoffRollout, "web", "2", 3}, handoff{Handoff: agentenv.HandoffOff}
	once := []string{"jobs/web-5d4f8"}
	tests := map[string]struct {
		owners      []metav1.OwnerReference
		annotations []string
		owner       *Owner
		want        handoff
		wantAsked   []string
	}{
		"a Deployment's pod":                      {replicaSet, nil, web, yes, once},
		"a Deployment's pod that asks for it":     {replicaSet, []string{KeyHandoff, "rollout"}, web, yes, once},
		"a Deployment's pod that wants none":      {replicaSet, []string{KeyHandoff, "off"}, web, off, nil},
		"a Deployment's pod without a gate":       {replicaSet, []string{KeyGate, "none"}, web, off, nil},
		"a Deployment's pod that is told only":    {replicaSet, []string{KeyOnLost, "notify"}, web, off, nil},
		"a Deployment's pod that does not wait":   {replicaSet, []string{KeyOnBusy, "fail"}, web, off, nil},
		"a Deployment's pod that waits too short": {replicaSet, []string{KeyWaitTimeout, "29s"}, web, off, nil},
		"a Deployment's pod that waits a TTL":     {replicaSet, []string{KeyWaitTimeout, "30s"}, web, yes, once},
		"a pod of a ReplicaSet without revisions": {replicaSet, nil, nil, off, once},
		"a pod of another kind of ReplicaSet":     {ownedBy("example.org/v1", "ReplicaSet"), nil, web, off, nil},
		"a pod of a Job":                          {ownedBy("batch/v1", "Job"), nil, web, off, nil},
		"a pod of a StatefulSet":                  {ownedBy("apps/v1", "StatefulSet"), nil, web, off, nil},
		"a pod of its own":                        {nil, nil, web, off, nil},
		"a pod that nothing controls":             {replicaSet[:1], nil, web, off, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := &lookups{owner: tc.owner}
			got := admit(t, l, ownedPod(tc.owners, append(tc.annotations, KeyMutex, "m")...))
			if diff := cmp.Diff(tc.want, handoffOf(t, got)); diff != "" {
				t.Errorf("the agent is told (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantAsked, l.asked); diff != "" {
				t.Errorf("looked up (-want +got):\n%s", diff)
			}
		})
	}
}

// The webhook is called again when others have changed the pod: what is looked up
// then counts, and nothing that the pod says of itself.
func TestHandoffIsTheSameTheSecondTime(t *testing.T) {
	l := &lookups{owner: web}
	once := admit(t, l, ownedPod(ownedBy("apps/v1", "ReplicaSet"), KeyMutex, "m"))
	if diff := cmp.Diff(once, admit(t, l, once)); diff != "" {
		t.Errorf("second pass (-once +twice):\n%s", diff)
	}
	later := admit(t, &lookups{owner: &Owner{"2", "web", 5}}, once)
	if diff := cmp.Diff(handoff{agentenv.HandoffRollout, "web", "2", 5}, handoffOf(t, later)); diff != "" {
		t.Errorf("after the revision has changed (-want +got):\n%s", diff)
	}
	once.OwnerReferences = nil
	if diff := cmp.Diff(handoff{Handoff: agentenv.HandoffOff}, handoffOf(t, admit(t, l, once))); diff != "" {
		t.Errorf("a copy without an owner (-want +got):\n%s", diff)
	}
}

func TestHandoffIsRefusedWhereThereAreNoRevisions(t *testing.T) {
	const want = `metadata.annotations[holdfast.dev/handoff]: Invalid value: "rollout": the pod is not of a Deployment, so it has no revision that another could be newer than: remove the key`
	for name, owners := range map[string][]metav1.OwnerReference{
		"a ReplicaSet without revisions": ownedBy("apps/v1", "ReplicaSet"),
		"a Job":                          ownedBy("batch/v1", "Job"),
		"a StatefulSet":                  ownedBy("apps/v1", "StatefulSet"),
		"none":                           nil,
	} {
		raw, err := json.Marshal(ownedPod(owners, KeyMutex, "m", KeyHandoff, "rollout"))
		if err != nil {
			t.Fatal(err)
		}
		response := newAPIServerWith(t, (&lookups{}).lookup).review(t, reviewOf(t, string(raw)))
		if response.Allowed || response.Result.Code != http.StatusUnprocessableEntity || !strings.HasSuffix(response.Result.Message, want) {
			t.Errorf("%s: got %+v, want it to be denied: %s", name, response.Result, want)
		}
	}
}

// Nothing is known: rather no pod for now than one that a rollout waits for.
func TestLookupThatFailsDeniesForNow(t *testing.T) {
	raw, err := json.Marshal(ownedPod(ownedBy("apps/v1", "ReplicaSet"), KeyMutex, "m"))
	if err != nil {
		t.Fatal(err)
	}
	server := newAPIServerWith(t, (&lookups{err: errors.New("connection refused")}).lookup)
	status := server.review(t, reviewOf(t, string(raw))).Result
	if status == nil || status.Code != http.StatusServiceUnavailable || status.Reason != metav1.StatusReasonServiceUnavailable {
		t.Fatalf("got %+v, want 503", status)
	}
	want := `Pod "web-5d4f8-" cannot be judged now, for who may take its lock over is not known: ` +
		`ReplicaSet "jobs/web-5d4f8": connection refused; it is made once that works, or at once with holdfast.dev/handoff: off`
	if status.Message != want {
		t.Errorf("message\n%s\nwant\n%s", status.Message, want)
	}
}
