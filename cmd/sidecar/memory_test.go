package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// What Go has under this name must be what it can return, or bursts are kept. All
// that this program allocates beside the test is far below the block. Go may have
// returned some by itself by the time the test looks.
func TestIdleMemoryIsWhatGoCanReturn(t *testing.T) {
	const block, much = 64 << 20, 32 << 20
	b := make([]byte, block)
	if got := idleMemory(); got > much {
		t.Errorf("with %d bytes in use %d are idle", block, got)
	}
	before := returnedMemory()
	runtime.KeepAlive(b)
	runtime.GC()
	if got := idleMemory() + returnedMemory() - before; got < much {
		t.Errorf("after %d bytes were given up %d are idle, or were returned since", block, got)
	}
	debug.FreeOSMemory()
	if got := idleMemory(); got > much {
		t.Errorf("after all was returned %d bytes are idle", got)
	}
}

// returnedMemory is how many bytes of the heap the system has back.
func returnedMemory() uint64 {
	returned := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(returned)
	return returned[0].Value.Uint64()
}
