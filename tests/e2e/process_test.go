//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// process is one of this machine's, by its number.
type process int

// agentOf finds the agent of a pod, and skips the test where the processes of the
// node cannot be reached.
func (s *trial) agentOf(pod *corev1.Pod) process { return s.processOf(pod, agentCommand...) }

// gateOf finds the gate of a pod that waits.
func (s *trial) gateOf(pod *corev1.Pod) process { return s.processOf(pod, gateCommand...) }

var (
	agentCommand = []string{"/holdfast-agent", "run"}
	gateCommand  = []string{"/holdfast-agent", "gate"}
)

func (s *trial) processOf(pod *corev1.Pod, command ...string) process {
	s.t.Helper()
	if !shared.seesProcesses {
		s.t.Skip("the node's processes cannot be reached: see hack/e2e")
	}
	var found process
	s.eventually(startWithin, strings.Join(command, " ")+" runs in "+pod.Name, func() bool {
		found = findProcess(pod, command...)
		return found != 0
	})
	return found
}

// findProcess finds one among the machine's by its command, 0 if there is none.
// The control group that the kubelet makes for a pod has its UID in its name,
// with other dashes where systemd makes it.
func findProcess(pod *corev1.Pod, command ...string) process {
	want := strings.Join(command, "\x00") + "\x00"
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		if line, _ := os.ReadFile(filepath.Join(folder, "cmdline")); string(line) != want {
			continue
		}
		groups, _ := os.ReadFile(filepath.Join(folder, "cgroup"))
		if strings.Contains(strings.ReplaceAll(string(groups), "_", "-"), string(pod.UID)) {
			n, _ := strconv.Atoi(filepath.Base(folder))
			return process(n)
		}
	}
	return 0
}

func (s *trial) signal(p process, sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(int(p), sig); err != nil {
		s.t.Fatalf("%s to %d: %v", sig, p, err)
	}
}

// freeze stops a process until it is killed or the test ends.
func (s *trial) freeze(p process) {
	s.t.Helper()
	s.signal(p, syscall.SIGSTOP)
	s.t.Cleanup(func() { _ = syscall.Kill(int(p), syscall.SIGCONT) })
}

func (p process) gone() bool { return syscall.Kill(int(p), 0) != nil }

// starve leaves the container of p one part in a thousand of a CPU.
func (s *trial) starve(p process) {
	s.t.Helper()
	quota, period := 1000, 1_000_000 // µs
	file, text := p.cgroup("", "cpu.max"), fmt.Sprintf("%d %d", quota, period)
	if folder := p.cgroup("cpu", ""); folder != "" { // version 1
		if err := os.WriteFile(filepath.Join(folder, "cpu.cfs_period_us"), []byte(strconv.Itoa(period)), 0); err != nil {
			s.t.Fatal(err)
		}
		file, text = filepath.Join(folder, "cpu.cfs_quota_us"), strconv.Itoa(quota)
	}
	if err := os.WriteFile(file, []byte(text), 0); err != nil {
		s.t.Fatal(err)
	}
}

// cgroup is a file of the process' control group: of one controller in version
// 1, of none in version 2; "" if there is no such group.
func (p process) cgroup(controller, file string) string {
	groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p))
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && fields[1] == controller {
			return filepath.Join("/sys/fs/cgroup", controller, fields[2], file)
		}
	}
	return ""
}

// cpu is the time that p has had so far.
func (p process) cpu() time.Duration { return p.ticks(14) + p.ticks(15) }

// memory reads lines such as VmRSS and RssAnon of p's status, in bytes.
func (p process) memory(line string) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
	for l := range strings.Lines(string(status)) {
		if name, value, _ := strings.Cut(l, ":"); name == line {
			kib, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}
