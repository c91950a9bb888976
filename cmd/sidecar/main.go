// Holdfast-agent is the sidecar that holds a lock for a pod. It is configured by
// HOLDFAST_ variables only; see package agentenv.
package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

func main() {
	stayLean()
	os.Exit(dispatch(program{
		args:      os.Args[1:],
		lookup:    os.LookupEnv,
		stdout:    os.Stdout,
		stderr:    os.Stderr,
		errorRest: 10 * time.Second,
	}))
}

// stayLean trades speed, which one lock has no use for, for memory, of which
// every pod pays its share: docs/footprint.md has the figures. Whoever sets
// Go's own variables has a reason, and wins.
func stayLean() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
}
