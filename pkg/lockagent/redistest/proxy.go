package redistest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy passes connections on to a server, and can be cut in two: then those who
// come from one address reach it no longer, while their connections stay open.
type Proxy struct {
	Addr string // 127.0.0.1:PORT

	to    string
	mu    sync.Mutex
	cut   string // an IP address
	conns []net.Conn
}

// NewProxy runs until the test ends.
func NewProxy(tb testing.TB, to string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), to: to}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.relay(conn) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		p.end()
		running.Wait()
	})
	return p
}

// Cut keeps all bytes from and to an IP address from passing.
func (p *Proxy) Cut(ip string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = ip
}

// Mend undoes Cut. What bytes were lost broke their connections, so all end.
func (p *Proxy) Mend() {
	p.Cut("")
	p.end()
}

func (p *Proxy) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *Proxy) relay(client net.Conn) {
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	ip, _, _ := net.SplitHostPort(client.RemoteAddr().String())
	var both sync.WaitGroup
	both.Go(func() { p.pass(ip, server, client) })
	both.Go(func() { p.pass(ip, client, server) })
	both.Wait()
}

// pass ends both connections when one ends.
func (p *Proxy) pass(ip string, to, from net.Conn) {
	_, _ = io.Copy(valve{p, ip, to}, from)
	_ = to.Close()
	_ = from.Close()
}

// valve lets bytes pass, or loses them.
type valve struct {
	proxy *Proxy
	ip    string
	to    io.Writer
}

func (v valve) Write(b []byte) (int, error) {
	v.proxy.mu.Lock()
	cut := v.proxy.cut == v.ip
	v.proxy.mu.Unlock()
	if cut {
		return len(b), nil
	}
	return v.to.Write(b)
}
