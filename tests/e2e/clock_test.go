//go:build e2e

package e2e

import (
	"time"

	"golang.org/x/sys/unix"
)

// boot is the machine's boot clock, which apps write into their journals too.
func boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
