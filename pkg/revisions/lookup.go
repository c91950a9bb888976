package revisions

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/holdfast-dev/holdfast/pkg/inject"
)

var replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}

// NewLookup asks the API server of config, and no cache, which could be behind:
// a pod is created moments after its ReplicaSet got its revision.
func NewLookup(config *rest.Config) (inject.OwnerLookup, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server knows best how much it can take
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, namespace string, ref metav1.OwnerReference) (*inject.Owner, error) {
		found, err := c.Resource(replicaSets).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("the webhook may not read it, see config/rbac.yaml: %w", err)
		case err != nil:
			return nil, err
		case found.UID != ref.UID:
			return nil, fmt.Errorf("it was replaced: its UID is %s, and the pod's is of %s", found.UID, ref.UID)
		}
		return ownerOf(found), nil
	}, nil
}
