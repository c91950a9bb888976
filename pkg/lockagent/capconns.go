package lockagent

import (
	"container/list"
	"net"
	"sync"
)

// capped bounds the connections of a listener by closing the oldest when one too
// many comes. Letting the newest wait instead would let anyone who can reach the
// port, and just keeps connections open, shut out the kubelet, which would then
// kill the agent.
type capped struct {
	net.Listener
	most int

	mu   sync.Mutex
	open list.List // of *cappedConn, the oldest first
}

func capConns(l net.Listener, most int) net.Listener { return &capped{Listener: l, most: most} }

// Accept waits for a connection, and makes room for it.
func (c *capped) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	counted := &cappedConn{Conn: conn, listener: c}
	c.mu.Lock()
	counted.place = c.open.PushBack(counted)
	var oldest *cappedConn
	if c.open.Len() > c.most {
		oldest = c.open.Front().Value.(*cappedConn)
	}
	c.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return counted, nil
}

// cappedConn gives its place back when closed.
type cappedConn struct {
	net.Conn
	listener *capped
	place    *list.Element
}

func (c *cappedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.open.Remove(c.place) // nothing, the second time
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
