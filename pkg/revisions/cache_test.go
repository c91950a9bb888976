package revisions

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// What is kept of an object is enough to decide by, and nothing that can be large.
func TestStripKeepsWhatDecides(t *testing.T) {
	full := replicaSet("web-1", "3")
	full.ResourceVersion = "17"
	want := full.DeepCopy()
	want.OwnerReferences = want.OwnerReferences[1:]
	full.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "all of it again"
	full.Labels = map[string]string{"pod-template-hash": "5d4f8"}
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	got, err := strip(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if _, err := strip("a text"); err == nil {
		t.Error("a text is taken for metadata")
	}
}

// An undo is an update of a ReplicaSet; most updates are of its status.
func TestWhatIsReconciled(t *testing.T) {
	updated := func(before, after string) event.UpdateEvent {
		return event.UpdateEvent{ObjectOld: replicaSet("web-1", before), ObjectNew: replicaSet("web-1", after)}
	}
	bare := podMeta.DeepCopy()
	if !revisionChanged().Update(updated("1", "3")) || revisionChanged().Update(updated("3", "3")) {
		t.Error("a ReplicaSet must be reconciled when its revision has changed, and only then")
	}
	if created().Update(event.UpdateEvent{ObjectNew: podOf("web-1")}) || !created().Create(event.CreateEvent{Object: podOf("web-1")}) {
		t.Error("a ReplicaSet must be reconciled when a pod of it is new, and only then")
	}
	for name, tc := range map[string]struct {
		pod  client.Object
		want []reconcile.Request
	}{
		"a pod of a ReplicaSet": {podOf("web-1"), []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web-1"}}}},
		"a pod of its own":      {bare, nil},
		"a pod of a Job":        {ownedBy(bare, controlledBy("Job", "etl", "etl-uid")), nil},
	} {
		if diff := cmp.Diff(tc.want, replicaSetOfPod(context.Background(), tc.pod)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func ownedBy(o *metav1.PartialObjectMetadata, owners []metav1.OwnerReference) *metav1.PartialObjectMetadata {
	o = o.DeepCopy()
	o.OwnerReferences = owners
	return o
}
