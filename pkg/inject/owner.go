package inject

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Owner is the ReplicaSet that a pod belongs to, as far as a handoff needs it.
type Owner struct {
	ReplicaSet string // its UID
	Workload   string // UID of what controls it, such as a Deployment
	Revision   int64  // from 1; a newer template has a greater one
}

// OwnerLookup asks the cluster about the ReplicaSet that a new pod names as its
// controller. It answers nil for one that has no revision or that nothing
// controls. An error means that nothing is known.
type OwnerLookup func(ctx context.Context, namespace string, replicaSet metav1.OwnerReference) (*Owner, error)

// replicaSetOf is the ReplicaSet that controls the pod, nil if none does.
func replicaSetOf(pod *metav1.ObjectMeta) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(pod)
	if ref == nil || ref.Kind != "ReplicaSet" {
		return nil
	}
	if group, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || group.Group != "apps" {
		return nil
	}
	return ref
}

// wantsHandoff tells whether the pod's ReplicaSet matters: where a handoff is
// asked for, and by default where a holder that yields is stopped by that, and the
// newer pod waits for it.
func (r *Request) wantsHandoff() bool {
	byDefault := r.Agent.Gate != agentenv.GateNone && r.Agent.StopsApp() && r.Agent.WaitsForHandoff()
	return r.Handoff == agentenv.HandoffRollout || r.Handoff == "" && byDefault
}

// needsOwner tells which ReplicaSet has to be known before [Request.belongTo];
// nil if there is none, or if nothing of the lock depends on it.
func (r *Request) needsOwner(pod *metav1.ObjectMeta) *metav1.OwnerReference {
	if !r.wantsHandoff() {
		return nil
	}
	return replicaSetOf(pod)
}

// belongTo completes the request with the pod's owner, nil if it has none: the
// agent is to hand the lock over to a newer revision of the same workload. That
// there is no such thing is wrong only where it was asked for.
func (r *Request) belongTo(owner *Owner) field.ErrorList {
	switch {
	case owner != nil && r.wantsHandoff():
		r.Agent.Handoff = agentenv.HandoffRollout
		r.Agent.Workload, r.Agent.ReplicaSet, r.Agent.Revision = owner.Workload, owner.ReplicaSet, owner.Revision
	case owner == nil && r.Handoff == agentenv.HandoffRollout:
		return field.ErrorList{field.Invalid(annotationPath(KeyHandoff), string(r.Handoff),
			"the pod is not of a Deployment, so it has no revision that another could be newer than: remove the key")}
	}
	return nil
}
