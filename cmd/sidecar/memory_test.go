package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// What Go has under this name must be what it can return, or bursts are kept. All
// that this program allocates beside the test is far below the block.
func TestIdleMemoryIsWhatGoCanReturn(t *testing.T) {
	const block, much = 64 << 20, 32 << 20
	b := make([]byte, block)
	if got := idleMemory(); got > much {
		t.Errorf("with %d bytes in use %d are idle", block, got)
	}
	runtime.KeepAlive(b)
	runtime.GC()
	if got := idleMemory(); got < much {
		t.Errorf("after %d bytes were given up %d are idle", block, got)
	}
	debug.FreeOSMemory()
	if got := idleMemory(); got > much {
		t.Errorf("after all was returned %d bytes are idle", got)
	}
}
