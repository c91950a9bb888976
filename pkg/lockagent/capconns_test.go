package lockagent

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// A connection that has ended leaves its place to another: else the oldest that
// could be closed would be one that is closed already, and none would be.
func TestCappedForgetsWhatIsClosed(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := capConns(plain, 2)
	defer func() { _ = l.Close() }()
	accept := func() (client, server net.Conn) {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		server, err = l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		return client, server
	}
	_, first := accept()
	_ = first.Close()
	second, _ := accept()
	third, _ := accept()
	if !open(second) || !open(third) {
		t.Error("closed one of two, and two are allowed")
	}
	fourth, _ := accept()
	if open(second) || !open(third) || !open(fourth) {
		t.Errorf("open: second %v, third %v, fourth %v; want the oldest, the second, closed", open(second), open(third), open(fourth))
	}
}

// open tells whether the other end has not closed c.
func open(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}
