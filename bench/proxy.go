package main

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// proxy stands between a client and Redis, and fails where it is told to. It
// sees requests and replies as they are read from the sockets: the small ones
// of a lock come in one piece each.
type proxy struct {
	target   string
	listener net.Listener
	judge    func(exchange) verdict

	mu     sync.Mutex
	silent bool // nothing passes any more, new connections included
	conns  []net.Conn
}

// exchange is one reply, with the request before it on the same connection.
type exchange struct {
	request []byte
	asked   time.Time // when the request came in
	reply   []byte
}

// verdict is what becomes of a reply.
type verdict int

const (
	pass    verdict = iota
	hang            // it is lost, and so is all that follows on this connection
	silence         // it passes, and then nothing more on any connection, while all stay open
)

// startProxy listens on loopback. judge is asked about every reply, one at a
// time.
func startProxy(target string, judge func(exchange) verdict) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{target: target, listener: listener, judge: judge}
	go p.serve()
	return p, nil
}

func (p *proxy) url() string { return "redis://" + p.listener.Addr().String() }

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		c := &proxied{proxy: p, client: client, server: server}
		go c.requests()
		go c.replies()
	}
}

// proxied is one connection. Its fields below the connections are guarded by
// the proxy's lock.
type proxied struct {
	*proxy
	client, server net.Conn
	last           exchange // without a reply yet
	hung           bool
}

func (c *proxied) requests() {
	defer func() { _ = c.server.Close() }()
	each(c.client, func(request []byte) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.silent || c.hung {
			return
		}
		c.last = exchange{request: bytes.Clone(request), asked: time.Now()}
		_, _ = c.server.Write(request)
	})
}

func (c *proxied) replies() {
	defer func() { _ = c.client.Close() }()
	each(c.server, func(reply []byte) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.silent || c.hung {
			return
		}
		c.last.reply = reply
		switch c.judge(c.last) {
		case hang:
			c.hung = true
			return
		case silence:
			c.silent = true
		}
		_, _ = c.client.Write(reply)
	})
}

// each hands on what is read until the connection ends.
func each(conn net.Conn, f func([]byte)) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := conn.Read(buffer)
		if n > 0 {
			f(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// ranScript tells whether a script was run, and not refused.
func (x exchange) ranScript() bool {
	return bytes.Contains(bytes.ToLower(x.request), []byte("\r\nevalsha\r\n")) && !bytes.HasPrefix(x.reply, []byte("-"))
}
