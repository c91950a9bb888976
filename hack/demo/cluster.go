package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// cluster stands for the parts of Kubernetes between a workload and its pods:
// controllers, admission and one node.
type cluster struct {
	namespace string
	dir       string // of the pods
	admission admission
	kubelet   *kubelet
	node      node

	mu     sync.Mutex
	made   map[string]int // pods made of each sample, for their names
	pods   []*pod         // that the table shows
	living sync.WaitGroup
}

// create makes one pod of s, as its controller would, lets the webhook have it,
// and runs it until its end.
func (c *cluster) create(ctx context.Context, s sample) (*pod, error) {
	object, err := c.admission.admit(ctx, newObject(s), c.namespace)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", s.kind, s.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[s.name]++
	object.Name = fmt.Sprintf("%s%d", object.GenerateName, c.made[s.name])
	object.Namespace = c.namespace
	object.UID = uuid.NewUUID()

	dir := filepath.Join(c.dir, object.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p, err := newPod(object, dir, c.node)
	if err != nil {
		return nil, err
	}
	c.pods = append(c.pods, p)
	c.living.Go(func() { c.kubelet.run(ctx, p) })
	return p, nil
}

// newObject is a pod as a controller sends it: without name and namespace, which
// the API server adds later.
func newObject(s sample) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: *s.template.ObjectMeta.DeepCopy(),
		Spec:       *s.template.Spec.DeepCopy(),
	}
	p.GenerateName = s.name + "-"
	p.OwnerReferences = s.owners()
	return p
}

// end makes p end. Only the first ending counts.
func (c *cluster) end(p *pod, how ending) {
	select {
	case p.end <- how:
	default:
	}
}

// shown is a copy of the pods that the table shows.
func (c *cluster) shown() []*pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*pod(nil), c.pods...)
}

// forget takes pods that are over from the table.
func (c *cluster) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var left []*pod
	for _, p := range c.pods {
		switch p.currentPhase() {
		case phaseGone, phaseDone, phaseLost:
		default:
			left = append(left, p)
		}
	}
	c.pods = left
}

// drain deletes all pods and waits for their ends.
func (c *cluster) drain() {
	for _, p := range c.shown() {
		c.end(p, deleted)
	}
	c.living.Wait()
	c.forget()
}
