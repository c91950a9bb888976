package lockagent

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Clock is the time the agent lives by. Timers are Go's own; what a hold is
// worth is always asked here.
type Clock interface {
	// Boot is the time since the machine started, including time suspended,
	// during which Go's monotonic clock stands still (go.dev/issue/24595).
	Boot() time.Duration
	// BootID changes with each start of the machine: readings of Boot compare
	// only within one.
	BootID() string
	// Now is the wall clock, for people only.
	Now() time.Time
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Boot reads CLOCK_BOOTTIME.
func (SystemClock) Boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("clock_gettime(CLOCK_BOOTTIME): " + err.Error()) // since Linux 2.6.39; without it no deadline is right
	}
	return time.Duration(ts.Nano())
}

// BootID reads the kernel's random id of this boot; empty if there is none.
func (SystemClock) BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Now is time.Now.
func (SystemClock) Now() time.Time { return time.Now() }
