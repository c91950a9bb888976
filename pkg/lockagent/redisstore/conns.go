package redisstore

import (
	"net"
	"sync"
)

// conns are a client's open connections, by where they lead. Those to a server
// that is the primary no longer have to end: a subscription there would hear of
// nothing, and a frozen server never closes it.
type conns struct {
	mu     sync.Mutex
	open   map[*tracked]struct{}
	latest string // where the latest one leads
	count  int    // so many there have been
}

// tracked is an open connection. It is a *net.TCPConn also to the client's pool,
// which looks whether the other end has closed it.
type tracked struct {
	*net.TCPConn
	addr string
	in   *conns
}

func (c *conns) add(conn net.Conn, addr string) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	t := &tracked{tcp, addr, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[*tracked]struct{}{}
	}
	c.open[t] = struct{}{}
	c.latest = addr
	c.count++
	return t
}

func (t *tracked) Close() error {
	t.in.mu.Lock()
	delete(t.in.open, t)
	t.in.mu.Unlock()
	return t.TCPConn.Close()
}

// only ends the connections that lead elsewhere than to addr.
func (c *conns) only(addr string) {
	c.mu.Lock()
	var others []*tracked
	for t := range c.open {
		if t.addr != addr {
			others = append(others, t)
		}
	}
	c.mu.Unlock()
	for _, t := range others {
		_ = t.Close()
	}
}

func (c *conns) last() (addr string, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest, c.count
}
