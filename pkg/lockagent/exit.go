package lockagent

// The exit codes of holdfast-agent run. A kubelet restarts the pod in place on
// any of them but zero, which is why the agent never ends with zero while it
// holds, and never ends with anything else while there is nothing to give up.
const (
	ExitOK       = 0  // released, or ended while waiting
	ExitConfig   = 2  // bad variables
	ExitWatchdog = 70 // the wait loop stood still
	ExitBusy     = 75 // the lock was not free, or not in time
	ExitYielded  = 86 // gives the lock to a newer revision
	ExitLost     = 87 // lost the hold, or ended while holding
)
