package revisions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// published stands in for Redis.
type published struct {
	fails bool
	lines []string
}

func (p *published) Publish(_ context.Context, namespace, replicaSet string, revision int64) error {
	if p.fails {
		return errors.New("connection refused")
	}
	p.lines = append(p.lines, fmt.Sprintf("%s/%s %d", namespace, replicaSet, revision))
	return nil
}

func controlledBy(kind, name, uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{
		{Kind: "Thing", Name: "bystander", UID: "bystander-uid"},
		{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)},
	}
}

func replicaSet(name, revision string) *metav1.PartialObjectMetadata {
	rs := replicaSetMeta.DeepCopy()
	rs.Namespace, rs.Name, rs.UID = "shop", name, types.UID(name+"-uid")
	rs.OwnerReferences = controlledBy("Deployment", "web", "web-uid")
	rs.Annotations = map[string]string{deploymentRevision: revision}
	return rs
}

func podOf(replicaSet string) *metav1.PartialObjectMetadata {
	pod := podMeta.DeepCopy()
	pod.Namespace, pod.Name = "shop", replicaSet+"-pod"
	pod.OwnerReferences = controlledBy("ReplicaSet", replicaSet, replicaSet+"-uid")
	return pod
}

// newReconciler has a cache with these objects. What it logs is in the buffer.
func newReconciler(p Publisher, objects ...client.Object) (*reconciler, *bytes.Buffer) {
	var log bytes.Buffer
	cache := fake.NewClientBuilder().WithIndex(podMeta, controllerUID, controllersUID).WithObjects(objects...).Build()
	return &reconciler{
		Reader: cache, publisher: p, metrics: NewMetrics(prometheus.NewRegistry()),
		log: slog.New(slog.NewTextHandler(&log, nil)),
	}, &log
}

func reconcileOne(t *testing.T, r *reconciler, name string) reconcile.Result {
	t.Helper()
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestPublishesRevisionsOfReplicaSetsWithAgents(t *testing.T) {
	argo := replicaSet("web-1", "")
	argo.Annotations = map[string]string{rolloutRevision: "7"}
	alone := replicaSet("web-1", "3")
	alone.OwnerReferences = nil
	tests := map[string]struct {
		objects []client.Object
		want    []string
	}{
		"of a Deployment":                   {[]client.Object{replicaSet("web-1", "3"), podOf("web-1")}, []string{"shop/web-1-uid 3"}},
		"of a Rollout":                      {[]client.Object{argo, podOf("web-1")}, []string{"shop/web-1-uid 7"}},
		"without pods that have an agent":   {[]client.Object{replicaSet("web-1", "3"), podOf("web-2")}, nil},
		"that is gone":                      {[]client.Object{podOf("web-1")}, nil},
		"that nothing controls":             {[]client.Object{alone, podOf("web-1")}, nil},
		"whose revision is no number":       {[]client.Object{replicaSet("web-1", "new"), podOf("web-1")}, nil},
		"whose revision is none":            {[]client.Object{replicaSet("web-1", "0"), podOf("web-1")}, nil},
		"whose revision is more than 2^53":  {[]client.Object{replicaSet("web-1", "9007199254740993"), podOf("web-1")}, nil},
		"whose pods are of a namesake only": {[]client.Object{replicaSet("web-1", "3"), elsewhere(podOf("web-1"))}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := &published{}
			r, _ := newReconciler(p, tc.objects...)
			result := reconcileOne(t, r, "web-1")
			if diff := cmp.Diff(tc.want, p.lines); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
			if again := result.RequeueAfter; (again > 0) != (tc.want != nil) || again > 2*refreshEvery {
				t.Errorf("again after %s", again)
			}
		})
	}
}

// elsewhere moves an object into another namespace.
func elsewhere(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	o.Namespace = "another"
	return o
}

// However many revisions and tries there are, that Redis is away is one line, and
// so is that it is back.
func TestRedisAwayIsTriedAgainAndSaidOnce(t *testing.T) {
	p := &published{fails: true}
	r, log := newReconciler(p, replicaSet("web-1", "3"), podOf("web-1"), replicaSet("web-2", "4"), podOf("web-2"))
	var longest time.Duration
	for range 20 {
		for _, name := range []string{"web-1", "web-2"} {
			after := reconcileOne(t, r, name).RequeueAfter
			if after < firstRetry || after > 2*lastRetry {
				t.Fatalf("tried again after %s", after)
			}
			longest = max(longest, after)
		}
	}
	if longest < lastRetry {
		t.Errorf("pauses grow to %s only, want %s", longest, lastRetry)
	}
	p.fails = false
	reconcileOne(t, r, "web-1")
	reconcileOne(t, r, "web-2")
	if diff := cmp.Diff([]string{"shop/web-1-uid 3", "shop/web-2-uid 4"}, p.lines); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "connection refused") || !strings.Contains(lines[1], "failed=40") {
		t.Errorf("logged:\n%s", log)
	}
}
