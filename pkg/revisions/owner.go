package revisions

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast/pkg/inject"
)

// Where controllers note which revision of theirs a ReplicaSet is.
const (
	deploymentRevision = "deployment.kubernetes.io/revision"
	rolloutRevision    = "rollout.argoproj.io/revision"
)

// maxRevision is what Redis can count with, and more than anybody reaches.
const maxRevision = 1 << 53

// ownerOf reads the metadata of a ReplicaSet. It is nil where there is no
// controller that numbers revisions, as with a ReplicaSet of its own.
func ownerOf(replicaSet *metav1.PartialObjectMetadata) *inject.Owner {
	controller := metav1.GetControllerOf(replicaSet)
	revision := revisionOf(replicaSet)
	if controller == nil || revision == 0 {
		return nil
	}
	return &inject.Owner{ReplicaSet: string(replicaSet.UID), Workload: string(controller.UID), Revision: revision}
}

// revisionOf is 0 for one that has none.
func revisionOf(replicaSet *metav1.PartialObjectMetadata) int64 {
	for _, key := range []string{deploymentRevision, rolloutRevision} {
		if n, err := strconv.ParseInt(replicaSet.Annotations[key], 10, 64); err == nil && n > 0 && n <= maxRevision {
			return n
		}
	}
	return 0
}
