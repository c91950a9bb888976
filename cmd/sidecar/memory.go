package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	idleCheck = 5 * time.Second
	idleMost  = 256 << 10 // bytes of free memory that Go keeps; at rest it is a tenth of that
)

// stayLean trades speed, which one lock has no use for, for memory, of which
// every pod pays its share: docs/footprint.md has the figures. Whoever sets
// Go's own variables has a reason, and wins; the webhook sets GOMAXPROCS, for by
// now Go has set up memory for each processor of the node.
func stayLean() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
		go giveBack()
	}
}

// giveBack returns to the system what a burst of requests has left idle: Go
// would keep it, for a burst that may never come again. At rest it only looks.
func giveBack() {
	for range time.Tick(idleCheck) {
		if idleMemory() > idleMost {
			debug.FreeOSMemory()
		}
	}
}

// idleMemory is how many bytes Go could return. It is not taken from
// runtime.ReadMemStats, since that empties Go's caches in order to count, into
// lists that take 0.4 MB for good.
func idleMemory() uint64 {
	idle := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(idle)
	return idle[0].Value.Uint64()
}
