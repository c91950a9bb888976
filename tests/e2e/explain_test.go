//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// explain shows, where the test has failed, what there is to see.
func (s *trial) explain() {
	if !s.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	lives, _ := readLives(s.journal)
	for _, l := range lives {
		s.t.Log(l)
	}
	pods, err := shared.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Log(err)
		return
	}
	for i := range pods.Items {
		s.explainPod(ctx, &pods.Items[i])
	}
	events, err := shared.CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Log(err)
		return
	}
	for _, e := range events.Items {
		s.t.Log(e.LastTimestamp.Format(time.TimeOnly), e.InvolvedObject.Name, e.Reason, e.Message)
	}
}

func (s *trial) explainPod(ctx context.Context, pod *corev1.Pod) {
	s.t.Logf("pod %s is %s", pod.Name, pod.Status.Phase)
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		s.t.Logf("  %s: ready %t, restarts %d, %s", c.Name, c.Ready, c.RestartCount, strings.Join(strings.Fields(c.State.String()), " "))
	}
	if status(pod, agentName).Name == "" {
		return
	}
	log, err := shared.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: agentName, TailLines: new(int64(40))}).DoRaw(ctx)
	s.t.Logf("  the agent says, error %v:\n%s", err, log)
}

// end deletes a namespace and does not wait: a test should not pay for another's
// grace periods.
func (s *trial) end(namespace string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := shared.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		s.t.Log(err)
	}
	soon := metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}
	if err := shared.CoreV1().Pods(namespace).DeleteCollection(ctx, soon, metav1.ListOptions{}); err != nil {
		s.t.Log(err)
	}
}
