//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// With the webhook away, pods with our annotations are refused, saying why, and
// all others start. It is no test to run beside others.
func TestCaseB38WithoutTheWebhookOnlyAnnotatedPodsAreRefused(t *testing.T) {
	s := begin(t)
	scaleWebhook(t, 0)
	t.Cleanup(func() {
		scaleWebhook(t, 2)
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		if err := shared.untilInjecting(ctx); err != nil {
			t.Error(err)
		}
	})
	pods := shared.CoreV1().Pods(s.namespace)
	s.eventually(startWithin, "the webhook is away", func() bool {
		list, err := shared.CoreV1().Pods(system).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})

	_, err := pods.Create(t.Context(), newPod("annotated", mutex(lockName), s.withJournal), metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "pods.holdfast.dev") {
		t.Errorf("the annotated pod got %v, want a refusal that names the webhook", err)
	}
	s.pod("plain", nil, apps(app("app", "-lock=none")))
	s.awaitReady("plain")
}

func scaleWebhook(t *testing.T, replicas int32) {
	t.Helper()
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: webhookName, Namespace: system}}
	scale.Spec.Replicas = replicas
	if _, err := shared.AppsV1().Deployments(system).UpdateScale(context.Background(), webhookName, scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
