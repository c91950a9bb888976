//go:build e2e

package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a pod that holds and one that waits cost, over a minute.
func TestWhatAPodCosts(t *testing.T) {
	t.Parallel()
	s := begin(t)
	pods := map[string]*corev1.Pod{"holding": s.pod("holding", mutex(lockName, "ttl", "30s"))}
	s.awaitLives(startWithin, 1)
	pods["waiting"] = s.pod("waiting", mutex(lockName, "ttl", "30s"))
	s.awaitWaiters(1)
	pause(25 * time.Second) // to come to rest, and for late events
	type sample struct {
		cpu            time.Duration
		probes, events int
	}
	look := func(pod *corev1.Pod) sample {
		return sample{s.agentOf(pod).cpu(), s.probes(pod), s.eventCount(pod)}
	}
	before := map[string]sample{}
	for name, pod := range pods {
		before[name] = look(pod)
	}
	pause(time.Minute)
	for name, pod := range pods {
		agent, now := s.agentOf(pod), look(pod)
		figure(cost, name+": resident memory of the agent", "MiB", float64(agent.memory("VmRSS"))/(1<<20))
		figure(cost, name+": its anonymous part", "MiB", float64(agent.memory("RssAnon"))/(1<<20))
		figure(cost, name+": CPU time of the agent, a minute", "ms", float64((now.cpu - before[name].cpu).Milliseconds()))
		figure(cost, name+": probes by the kubelet, a minute", "", float64(now.probes-before[name].probes))
		figure(cost, name+": events in the API, a minute", "", float64(now.events-before[name].events))
	}
	gate := s.gateOf(pods["waiting"])
	figure(cost, "waiting: anonymous memory of the gate", "MiB", float64(gate.memory("RssAnon"))/(1<<20))
}

// probes counts the kubelet's probes of the pod's agent so far.
func (s *trial) probes(pod *corev1.Pod) int {
	s.t.Helper()
	node := s.get(pod.Name).Spec.NodeName
	text, err := shared.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", node, "proxy/metrics/probes").DoRaw(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "prober_probe_total{") && strings.Contains(line, `pod_uid="`+string(pod.UID)+`"`) {
			count, _ := strconv.ParseFloat(strings.Fields(line)[1], 64)
			n += int(count)
		}
	}
	return n
}

// eventsOf lists the events about the pod so far.
func (s *trial) eventsOf(pod *corev1.Pod) []corev1.Event {
	s.t.Helper()
	events, err := shared.CoreV1().Events(s.namespace).List(s.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
	if err != nil {
		s.t.Fatal(err)
	}
	return events.Items
}

// eventCount counts them, each as often as it happened.
func (s *trial) eventCount(pod *corev1.Pod) int {
	s.t.Helper()
	n := 0
	for _, e := range s.eventsOf(pod) {
		n += int(max(e.Count, 1))
	}
	return n
}
