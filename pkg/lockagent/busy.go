package lockagent

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// busyFrom is the part of the last ten seconds, in percent, that some process of
// the machine had to wait for CPU or disk, from which on the machine is busy.
const busyFrom = 10

// machineBusy tells whether a process of this machine may be late. It may where
// the kernel does not say.
func machineBusy() bool { return busy(os.DirFS("/proc"), runtime.NumCPU()) }

// busy reads how long processes had to wait, which the kernel works out every
// two seconds, and how many want a CPU right now.
func busy(proc fs.FS, cpus int) bool {
	for _, resource := range []string{"cpu", "io"} {
		var waited float64
		if !scan(proc, "pressure/"+resource, "some avg10=%f", &waited) || waited >= busyFrom {
			return true
		}
	}
	var skip float64
	var running int
	return !scan(proc, "loadavg", "%f %f %f %d/", &skip, &skip, &skip, &running) || running > 2*cpus
}

func scan(proc fs.FS, file, format string, values ...any) bool {
	text, err := fs.ReadFile(proc, file)
	if err != nil {
		return false
	}
	n, _ := fmt.Sscanf(string(text), format, values...)
	return n == len(values)
}
