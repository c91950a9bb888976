//go:build e2e

package e2e

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// controller stands in for one of a kind that this cluster does not have, such as
// a Rollout of Argo: it does nothing, but is there and has a UID.
func (s *trial) controller() *corev1.ConfigMap {
	s.t.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "rollout"}}
	c, err := shared.CoreV1().ConfigMaps(s.namespace).Create(s.t.Context(), c, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// replicaSet is one of one replica, as Argo Rollouts makes them.
func (s *trial) replicaSet(name, revision string, controller *corev1.ConfigMap, changes ...func(*corev1.PodSpec)) {
	s.t.Helper()
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{"rollout.argoproj.io/revision": revision},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(controller, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
	}}
	rs.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	rs.Spec.Template = s.template(name, mutex(lockName, "ttl", "30s"), changes...)
	if _, err := shared.AppsV1().ReplicaSets(s.namespace).Create(s.t.Context(), rs, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *trial) scaleReplicaSet(name string, replicas int32) {
	s.t.Helper()
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
	scale.Spec.Replicas = replicas
	if _, err := shared.AppsV1().ReplicaSets(s.namespace).UpdateScale(s.t.Context(), name, scale, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}
