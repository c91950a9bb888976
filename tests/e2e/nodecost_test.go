//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// nodePrograms are those that do the kubelet's work, by the name in /proc/PID/comm.
var nodePrograms = []string{"kubelet", "containerd", "containerd-shim"}

// cpuTimes is what each of them has used so far, with all the processes that it has
// started and that have ended.
type cpuTimes map[process]time.Duration

func nodeCPU() cpuTimes {
	times := cpuTimes{}
	for _, name := range nodePrograms {
		for _, p := range running(name) {
			times[p] = p.cpu() + p.endedChildren()
		}
	}
	return times
}

// since is what was used from an earlier look to this one, by processes that were
// there both times: a pod that ends takes with it what its shim has used.
func (now cpuTimes) since(earlier cpuTimes) (used time.Duration) {
	for p, before := range earlier {
		if after, ok := now[p]; ok {
			used += after - before
		}
	}
	return used
}

// nodeMemory is the resident memory of a program, in bytes.
func nodeMemory(name string) (bytes int64) {
	for _, p := range running(name) {
		bytes += p.memory("VmRSS")
	}
	return bytes
}

// running lists the machine's processes of that name.
func running(comm string) []process {
	var found []process
	files, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range files {
		if name, _ := os.ReadFile(file); strings.TrimSpace(string(name)) == comm {
			n, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			found = append(found, process(n))
		}
	}
	return found
}

// endedChildren is the CPU time of p's children that have ended.
func (p process) endedChildren() time.Duration { return p.ticks(16) + p.ticks(17) }

// ticks is one field of /proc/PID/stat, numbered as in its manual.
func (p process) ticks(field int) time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if i := field - 3; i < len(fields) {
		n, _ := strconv.Atoi(fields[i])
		return time.Duration(n) * 10 * time.Millisecond // clock ticks, 100 a second
	}
	return 0
}
