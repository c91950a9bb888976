//go:build e2e

package e2e

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// link is a way to a Redis. It listens on the machine's address, where pods reach
// it, and can be cut.
type link struct {
	listener net.Listener

	mu     sync.Mutex
	target string     // path of a unix socket
	dark   bool       // whatever is sent disappears
	conns  []net.Conn // both ends of each connection
}

// newLink is a test's own, to its Redis.
func newLink(t *testing.T, host, target string) *link {
	t.Helper()
	l, err := openLink(host, "0")
	if err != nil {
		t.Fatal(err)
	}
	l.aim(target)
	t.Cleanup(func() {
		_ = l.listener.Close()
		l.drop()
	})
	return l
}

// openLink leads nowhere yet.
func openLink(host, port string) (*link, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener}
	go l.serve()
	return l, nil
}

// aim leads new connections to a Redis by its socket, or nowhere if that is empty.
func (l *link) aim(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
}

func (l *link) aimed() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.target
}

// url is what the Secret of a namespace says.
func (l *link) url() string { return "redis://" + l.listener.Addr().String() }

func (l *link) serve() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.forward(conn)
	}
}

func (l *link) forward(conn net.Conn) {
	server, err := net.DialTimeout("unix", l.aimed(), time.Second)
	if err != nil {
		_ = conn.Close()
		return
	}
	l.mu.Lock()
	l.conns = append(l.conns, conn, server)
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.pass(server, conn) })
	both.Go(func() { l.pass(conn, server) })
	both.Wait()
	_ = conn.Close()
	_ = server.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = slices.DeleteFunc(l.conns, func(c net.Conn) bool { return c == conn || c == server })
}

// pass copies until one side ends. In the dark it reads on, as a network does
// that loses every packet.
func (l *link) pass(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !l.isDark() {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if tcp, ok := to.(interface{ CloseWrite() error }); ok && errors.Is(err, io.EOF) {
				_ = tcp.CloseWrite()
			}
			return
		}
	}
}

// cut lets everything disappear that is sent from now on.
func (l *link) cut() { l.set(true) }

// restore ends the cut. What was sent meanwhile is lost, so connections that
// were open then are of no use and are closed.
func (l *link) restore() {
	l.set(false)
	l.drop()
}

func (l *link) set(dark bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dark = dark
}

func (l *link) isDark() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dark
}

func (l *link) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
}
