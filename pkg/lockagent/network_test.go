package lockagent

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// inOwnNetwork runs f on a network that has nothing but loopback, with IPv6 or
// without, whatever the machine has. Sockets that f opens on its own goroutine are
// on that network, and so is what it dials there.
func inOwnNetwork(t *testing.T, ipv6 bool, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := ownNetwork(ipv6)
		if err == nil {
			f()
		}
		done <- err
	}()
	switch err := <-done; {
	case errors.Is(err, unix.EPERM) && os.Getenv("HOLDFAST_REQUIRE_REAL") != "1":
		t.Skip("only root may make a network")
	case errors.Is(err, os.ErrNotExist):
		t.Skip("this kernel has no IPv6")
	case err != nil:
		t.Fatal(err)
	}
}

func ownNetwork(ipv6 bool) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	off := "1" // as in a pod whose runtime has turned it off
	if ipv6 {
		off = "0"
	}
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte(off), 0); err != nil && (ipv6 || !errors.Is(err, os.ErrNotExist)) {
		return err
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, loopback)
}
