package apiserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
	"github.com/holdfast-dev/holdfast/pkg/revisions"
)

const deploymentRevision = "deployment.kubernetes.io/revision"

// newReplicaSet is one of a Deployment, changed as told. There is no controller
// that would make its pods.
func (c *cluster) newReplicaSet(t *testing.T, namespace, name string, changes ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	t.Helper()
	labels := map[string]string{"app": name}
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{deploymentRevision: "1"},
		OwnerReferences: []metav1.OwnerReference{owner("apps/v1", "Deployment")},
	}}
	rs.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	rs.Spec.Template.Labels = labels
	rs.Spec.Template.Spec = newPod(nil).Spec
	for _, change := range changes {
		change(rs)
	}
	rs, err := c.AppsV1().ReplicaSets(namespace).Create(t.Context(), rs, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// of makes a pod one that the ReplicaSet controls.
func of(rs *appsv1.ReplicaSet) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	}
}

// setRevision is what `kubectl rollout undo` leads to.
func (c *cluster) setRevision(t *testing.T, rs *appsv1.ReplicaSet, revision string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, deploymentRevision, revision)
	_, err := c.AppsV1().ReplicaSets(rs.Namespace).Patch(t.Context(), rs.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// replica is a second or third webhook, that publishes to a Redis of the test's.
func (c *cluster) replica(t *testing.T, server *redistest.Server) *webhook {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "url"), []byte(server.SocketURL()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := c.startWebhook("--redis-dir", dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if w.cmd.ProcessState == nil {
			_ = w.stop()
		}
		if t.Failed() {
			t.Logf("the log of the one at %s:\n%s", w.address, w.log)
		}
	})
	return w
}

// metric reads one line of the replica's metrics.
func (w *webhook) metric(t *testing.T, name string) string {
	t.Helper()
	response, err := http.Get("http://" + w.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Two replicas run as the ServiceAccount of the manifests, with no more rights
// than rbac.yaml gives it. One of them publishes; when it ends, the other one
// does; when Redis is away, it catches up.
func TestRevisionsArePublishedByOneReplica(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	server := redistest.Start(t)
	db := redis.NewClient(&redis.Options{Network: "unix", Addr: server.Socket})
	t.Cleanup(func() { _ = db.Close() })
	published := func(rs *appsv1.ReplicaSet) string {
		return db.Get(context.Background(), "revision:{"+rs.Namespace+"/"+string(rs.UID)+"}").Val()
	}
	namespace := c.newNamespace(t, nil)
	used, unused := c.newReplicaSet(t, namespace, "web-1"), c.newReplicaSet(t, namespace, "web-2")
	c.mustCreate(t, namespace, newPod(mutex, of(used)))
	c.mustCreate(t, namespace, newPod(nil, of(unused)))

	first := c.replica(t, server)
	eventually(t, func() bool { return published(used) == "1" })
	second := c.replica(t, server)
	c.setRevision(t, used, "3")
	eventually(t, func() bool { return published(used) == "3" })
	if got := published(unused); got != "" {
		t.Errorf("a ReplicaSet without agents has revision %s in Redis", got)
	}
	const leader = "holdfast_revisions_leader"
	if got := first.metric(t, leader) + second.metric(t, leader); got != "10" {
		t.Errorf("leaders are %q, want the first alone", got)
	}

	away(t, server, func() {
		c.setRevision(t, used, "4")
		eventually(t, func() bool { return first.metric(t, "holdfast_revisions_failures_total") != "0" })
	})
	eventually(t, func() bool { return published(used) == "4" })

	if err := first.stop(); err != nil {
		t.Error(err)
	}
	later := c.newReplicaSet(t, namespace, "web-3")
	c.mustCreate(t, namespace, newPod(mutex, of(later)))
	eventually(t, func() bool { return published(later) == "1" })
	if got := second.metric(t, leader); got != "1" {
		t.Errorf("the second publishes, and says %q of whether it is the leader", got)
	}
	c.mustSurviveLoss(t, second)
	for _, w := range []*webhook{first, second} {
		if log := w.log.String(); strings.Contains(log, "forbidden") {
			t.Errorf("config/rbac.yaml lacks something:\n%s", log)
		}
	}
}

// away has Redis answer nothing meanwhile.
func away(t *testing.T, server *redistest.Server, meanwhile func()) {
	t.Helper()
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
}

// mustSurviveLoss takes the Lease away from a replica, as an API server does that
// is away for long: it publishes no more, admits all the same, and comes back.
func (c *cluster) mustSurviveLoss(t *testing.T, w *webhook) {
	t.Helper()
	leases := c.CoordinationV1().Leases("holdfast-system")
	lease, err := leases.Get(t.Context(), revisions.LeaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = new("another"), new(metav1.NowMicro())
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return w.metric(t, "holdfast_revisions_leader") == "0" })
	eventually(t, func() bool { return w.metric(t, "holdfast_revisions_leader") == "1" })
	if !strings.Contains(w.log.String(), "publishing of revisions has ended and starts again") {
		t.Error("the log does not say so")
	}
}

// A program that may not read ReplicaSets says what to do about it.
func TestLookupWithoutRights(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}}
	if _, err := c.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	text, err := c.kubeconfigOf(t.Context(), namespace, account.Name)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	lookup, err := revisions.NewLookup(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lookup(t.Context(), namespace, owner("apps/v1", "ReplicaSet")); err == nil || !strings.Contains(err.Error(), "config/rbac.yaml") {
		t.Errorf("got %v, want an error that names config/rbac.yaml", err)
	}
}
