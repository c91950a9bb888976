package revisions

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// watch has a ReplicaSet reconciled when its revision changes, and when it gets a
// pod with an agent.
func (o Options) watch(ctx context.Context, m manager.Manager) error {
	if err := m.GetFieldIndexer().IndexField(ctx, podMeta, controllerUID, controllersUID); err != nil {
		return fmt.Errorf("index of pods: %w", err)
	}
	return builder.ControllerManagedBy(m).Named("revisions").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}). // see reconciler.failed
		For(replicaSetMeta.DeepCopy(), builder.WithPredicates(revisionChanged())).
		Watches(podMeta.DeepCopy(), handler.EnqueueRequestsFromMapFunc(replicaSetOfPod), builder.WithPredicates(created())).
		Complete(&reconciler{Reader: m.GetClient(), publisher: o.Publisher, metrics: o.Metrics, log: o.Log})
}

// controllerUID names the index of pods by what controls them.
const controllerUID = "controller-uid"

func controllersUID(pod client.Object) []string {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return []string{string(ref.UID)}
	}
	return nil
}

func replicaSetOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != replicaSetMeta.Kind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: pod.GetNamespace(), Name: ref.Name}}}
}

func revisionChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*metav1.PartialObjectMetadata)
			after, also := e.ObjectNew.(*metav1.PartialObjectMetadata)
			return !ok || !also || revisionOf(before) != revisionOf(after)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

func created() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
