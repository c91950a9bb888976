//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What it costs a node to ask: over HTTP, by our exec probes, which go on asking for
// a while, and by such as start a process for each question, in pods that are not
// ours. Nothing else runs meanwhile.
func TestWhatProbesCostTheNode(t *testing.T) {
	if !measuring() {
		t.Skip("it only measures: run it with -figures")
	}
	if !shared.seesProcesses {
		t.Skip("the node's processes cannot be reached: see hack/e2e")
	}
	const pods = 5
	for _, kind := range []struct {
		name string
		pod  func(s *trial, i int) *corev1.Pod
	}{
		{"HTTP probes", func(s *trial, i int) *corev1.Pod { return s.ownLock(i, "http") }},
		{"exec probes", func(s *trial, i int) *corev1.Pod { return s.ownLock(i, "exec") }},
		{"for comparison, a plain pod with an exec probe every 2 s", plainExec},
	} {
		s := begin(t)
		s.awaitRest()
		idle := s.rate(8 * time.Second)
		var all []*corev1.Pod
		for i := range pods {
			all = append(all, kind.pod(s, i))
		}
		s.awaitLives(2*time.Minute, pods)
		pause(6 * time.Second) // to come to rest
		rate := s.rate(20 * time.Second)
		figure(nodeCosts, kind.name+": CPU time of the kubelet and containerd for a pod, a minute", "ms", (rate.node-idle.node)/pods)
		if strings.HasPrefix(kind.name, "exec") {
			s.measureExecProbe(all)
		}
		for _, pod := range all {
			s.delete(pod.Name, 1)
		}
		s.eventually(time.Minute, "the pods are gone", func() bool { return s.podCount() == 0 })
	}
}

// measureExecProbe looks at a process that asks, and at what the agent's container
// has used at most.
func (s *trial) measureExecProbe(pods []*corev1.Pod) {
	for _, pod := range pods {
		asking := findProcess(pod, "/holdfast-agent", "probe", "--for", "30s", "--every", "2s")
		if asking != 0 { // else it is between two
			figure(nodeCosts, "exec probes: anonymous memory of the process that asks", "MiB", float64(asking.memory("RssAnon"))/(1<<20))
		}
		figure(nodeCosts, "exec probes: the most memory that the agent's container has used", "MiB", float64(s.agentOf(pod).memoryPeak())/(1<<20))
	}
}

// ownLock is a pod that holds a lock of its own.
func (s *trial) ownLock(i int, probe string) *corev1.Pod {
	lock := fmt.Sprintf("own-%d", i)
	return s.pod(fmt.Sprintf("pod-%d", i), mutex(lock, "ttl", "30s", "probe", probe), apps(app("app", "-lock="+lock)))
}

func plainExec(s *trial, i int) *corev1.Pod {
	return s.pod(fmt.Sprintf("pod-%d", i), nil, func(spec *corev1.PodSpec) {
		c := app("app", fmt.Sprintf("-lock=none-%d", i))
		c.LivenessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", "0"}}},
			PeriodSeconds: 2, TimeoutSeconds: 10,
		}
		spec.Containers = []corev1.Container{c}
	})
}

// memoryPeak is the most that the process' control group has had, in bytes.
func (p process) memoryPeak() int64 {
	text, err := os.ReadFile(p.cgroup("memory", "memory.max_usage_in_bytes"))
	if err != nil {
		text, _ = os.ReadFile(p.cgroup("", "memory.peak"))
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}
