package revisions

import (
	"context"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// refreshEvery is well below the time for which a revision stays published,
	// and bounds how long one is missing after Redis has lost its data.
	refreshEvery = 2 * time.Minute

	publishTimeout = 5 * time.Second
	firstRetry     = time.Second
	lastRetry      = 15 * time.Second
)

// Publisher is where revisions are published: [redisstore.Publisher].
type Publisher interface {
	Publish(ctx context.Context, namespace, replicaSet string, revision int64) error
}

// reconciler publishes the revision of one ReplicaSet at a time.
type reconciler struct {
	client.Reader
	publisher Publisher
	metrics   *Metrics
	log       *slog.Logger
	failed    int // publications in a row
}

// Reconcile publishes the revision of a ReplicaSet that has pods with an agent,
// now and again every two minutes.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	replicaSet := replicaSetMeta.DeepCopy()
	if err := r.Get(ctx, req.NamespacedName, replicaSet); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	owner := ownerOf(replicaSet)
	if owner == nil {
		return reconcile.Result{}, nil
	}
	if used, err := r.hasPods(ctx, replicaSet); err != nil || !used {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.publish(ctx, req.Namespace, owner.ReplicaSet, owner.Revision)}, nil
}

func (r *reconciler) hasPods(ctx context.Context, replicaSet *metav1.PartialObjectMetadata) (bool, error) {
	var pods metav1.PartialObjectMetadataList
	pods.APIVersion, pods.Kind = podMeta.APIVersion, podMeta.Kind
	err := r.List(ctx, &pods, client.InNamespace(replicaSet.Namespace), client.MatchingFields{controllerUID: string(replicaSet.UID)}, client.Limit(1))
	return len(pods.Items) > 0, err
}

// publish tells when the same is to be published again. Failures have one cause,
// Redis, however many ReplicaSets there are: one line says that it is away, one
// that it is back, and all wait alike.
func (r *reconciler) publish(ctx context.Context, namespace, replicaSet string, revision int64) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if err := r.publisher.Publish(ctx, namespace, replicaSet, revision); err != nil {
		r.metrics.failures.Inc()
		if r.failed == 0 {
			r.log.Warn("revisions are not published until Redis takes them; an undo can wait for a hand meanwhile", "error", err)
		}
		pause := min(firstRetry<<min(r.failed, 10), lastRetry)
		r.failed++
		return wait.Jitter(pause, 0.5)
	}
	r.metrics.published.Inc()
	if r.failed > 0 {
		r.log.Info("revisions are published again", "failed", r.failed)
		r.failed = 0
	}
	return wait.Jitter(refreshEvery, 0.1)
}
