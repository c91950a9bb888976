package redisstore

import (
	"context"
	"net"
	"sync"
)

// finder says where the primary is that has the lock's keys. It is safe for
// concurrent use.
type finder interface {
	// find names the server to connect to.
	find(ctx context.Context) (string, error)
	// look names the primary if it may have changed since find, else "".
	look(ctx context.Context) string
	// failed tells that the server that was named does not do.
	failed()
	// moved tells which server said that which one has the keys. It tells whether
	// that was to be expected: there is a cluster.
	moved(from, to string) bool
	// hosts is how many servers find can name at most.
	hosts() int
}

// fixed is a single server.
type fixed string

func (f fixed) find(context.Context) (string, error) { return string(f), nil }
func (fixed) look(context.Context) string            { return "" }
func (fixed) failed()                                {}
func (fixed) moved(string, string) bool              { return false }
func (fixed) hosts() int                             { return 1 }

// nodes are those of a cluster. Where a lock's keys are is known from whichever
// node was asked last: each of them knows, and says so.
type nodes struct {
	seeds []string

	mu    sync.Mutex
	owner string // of the lock's slot; empty if unknown
	seed  int    // to ask next while it is unknown
}

func (n *nodes) find(context.Context) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.owner != "" {
		return n.owner, nil
	}
	return n.seeds[n.seed], nil
}

func (n *nodes) look(context.Context) string { return "" }

func (n *nodes) failed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owner, n.seed = "", (n.seed+1)%len(n.seeds)
}

// moved fills in what a node leaves out: its own host, if it does not know that,
// or if the owner is on the same one.
func (n *nodes) moved(from, to string) bool {
	to = reachable(from, to)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owner = to
	return true
}

func (n *nodes) hosts() int { return len(n.seeds) + 1 }

// reachable is the address that a node has named, as it is meant.
func reachable(from, to string) string {
	host, port, err := net.SplitHostPort(to)
	if err != nil || host != "" && host != "?" {
		return to
	}
	if host, _, err = net.SplitHostPort(from); err != nil {
		return to
	}
	return net.JoinHostPort(host, port)
}
