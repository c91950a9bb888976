//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fleet is how many pods wait on one node. A kubelet takes 110.
const fleet = 50

// Fifty pods that wait cost the node little, and leave nothing when they are deleted
// all at once. Nothing else runs meanwhile.
func TestAFleetThatWaits(t *testing.T) {
	if !shared.seesProcesses {
		t.Skip("the node's processes cannot be reached: see hack/e2e")
	}
	s := begin(t)
	s.pod("holder", mutex(lockName, "ttl", "30s"))
	s.awaitLives(startWithin, 1)
	before := s.mustHold()
	alone, memory := s.rate(10*time.Second), nodeMemory("kubelet")

	begun := boot()
	var waiting []*corev1.Pod
	for i := range fleet {
		waiting = append(waiting, s.pod(fmt.Sprintf("waiter-%d", i), mutex(lockName, "ttl", "30s"), waiter))
	}
	s.eventually(3*time.Minute, "all wait in line", func() bool { return s.waiters() == fleet })
	s.eventually(time.Minute, "all stand at their gates", func() bool { return s.atTheirGates() == fleet })
	figure(nodeCosts, fmt.Sprintf("%d pods created at once → all wait in line, and at their gates", fleet), "s", (boot() - begun).Seconds())
	started := s.eventTotal()
	pause(10 * time.Second) // to come to rest

	rate := s.rate(20 * time.Second)
	const each = float64(fleet)
	figure(nodeCosts, "a waiting pod: CPU time of the kubelet and containerd, a minute", "ms", (rate.node-alone.node)/each)
	figure(nodeCosts, "a waiting pod: commands in Redis, with those of scripts, a minute", "", (rate.commands-alone.commands)/each)
	figure(nodeCosts, "a waiting pod: connections to Redis", "", (rate.connections-alone.connections)/each)
	figure(nodeCosts, "a waiting pod: memory of the kubelet", "MiB", float64(nodeMemory("kubelet")-memory)/each/(1<<20))
	figure(nodeCosts, "a waiting pod: events, until it waits", "", float64(started)/each)
	figure(nodeCosts, fmt.Sprintf("%d waiting pods: events, a minute", fleet), "", rate.events)
	if rate.events > 0 {
		t.Errorf("%.0f events a minute while %d pods just wait, want none", rate.events, fleet)
	}
	if warnings := s.warnings(); len(warnings) > 0 {
		t.Errorf("%d warnings, such as: %s", len(warnings), warnings[0])
	}

	s.deleteWaiters()
	gone := boot()
	s.eventually(time.Minute, "the queue is empty", func() bool { return s.waiters() == 0 })
	figure(nodeCosts, fmt.Sprintf("%d waiting pods deleted at once → none is in line", fleet), "s", (boot() - gone).Seconds())
	s.eventually(2*time.Minute, "no pod is left but the holder's", func() bool { return s.podCount() == 1 })
	for _, pod := range waiting {
		if agent := findProcess(pod, agentCommand...); agent != 0 {
			t.Errorf("the agent of %s is still there: process %d", pod.Name, agent)
		}
	}
	s.mustLeaveNoWaiters()
	s.mustBeSame(before)
	if n := len(s.lives()); n != 1 {
		t.Errorf("%d apps have started, want the holder's alone", n)
	}
}

// waiter makes the pod one of the fleet, whose app never starts.
func waiter(spec *corev1.PodSpec) { spec.TerminationGracePeriodSeconds = new(int64(5)) }

// perMinute is what happens on the node in a minute.
type perMinute struct {
	node                  float64 // CPU time of the node's programs, ms
	commands, connections float64 // of Redis; connections are those at the end
	events                float64 // about this trial's pods
}

// rate looks at the node for a while.
func (s *trial) rate(during time.Duration) perMinute {
	s.t.Helper()
	cpu, commands, events := nodeCPU(), s.redisInfo("total_commands_processed"), s.eventTotal()
	pause(during)
	minutes := during.Minutes()
	return perMinute{
		node:        float64(nodeCPU().since(cpu).Milliseconds()) / minutes,
		commands:    float64(s.redisInfo("total_commands_processed")-commands) / minutes,
		connections: float64(s.redisInfo("connected_clients")),
		events:      float64(s.eventTotal()-events) / minutes,
	}
}

func (s *trial) redisInfo(field string) int {
	s.t.Helper()
	info, err := s.db.Info(s.t.Context()).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == field {
			n, _ := strconv.Atoi(value)
			return n
		}
	}
	s.t.Fatalf("INFO has no %s", field)
	return 0
}

// events lists those of the trial's namespace.
func (s *trial) events() []corev1.Event {
	s.t.Helper()
	events, err := shared.CoreV1().Events(s.namespace).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return events.Items
}

// eventTotal counts them, each as often as it happened.
func (s *trial) eventTotal() (n int) {
	s.t.Helper()
	for _, e := range s.events() {
		n += int(max(e.Count, 1))
	}
	return n
}

func (s *trial) warnings() (texts []string) {
	s.t.Helper()
	for _, e := range s.events() {
		if isWarning(e) {
			texts = append(texts, e.InvolvedObject.Name+": "+e.Reason+" "+e.Message)
		}
	}
	return texts
}

func (s *trial) pods() []corev1.Pod {
	s.t.Helper()
	pods, err := shared.CoreV1().Pods(s.namespace).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return pods.Items
}

func (s *trial) podCount() int { return len(s.pods()) }

// atTheirGates counts the pods whose agent has started and whose gate runs.
func (s *trial) atTheirGates() (n int) {
	for _, pod := range s.pods() {
		agent, gate := status(&pod, agentName), status(&pod, gateName)
		if agent.Started != nil && *agent.Started && gate.State.Running != nil {
			n++
		}
	}
	return n
}

// deleteWaiters deletes all pods but the holder's in one request.
func (s *trial) deleteWaiters() {
	s.t.Helper()
	all := metav1.ListOptions{FieldSelector: "metadata.name!=holder"}
	if err := shared.CoreV1().Pods(s.namespace).DeleteCollection(s.t.Context(), metav1.DeleteOptions{}, all); err != nil {
		s.t.Fatal(err)
	}
}

// mustLeaveNoWaiters fails the test if Redis remembers any.
func (s *trial) mustLeaveNoWaiters() {
	s.t.Helper()
	for _, key := range []string{":queue", ":waiters", ":heartbeats"} {
		if n := s.db.Exists(s.t.Context(), s.mutexKey()+key).Val(); n > 0 {
			s.t.Errorf("Redis still has %s%s", s.mutexKey(), key)
		}
	}
}
