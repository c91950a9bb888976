package redisstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// link is the way to the one server that has a lock's keys now. Its client has
// one connection for calls, and one for each subscription; where these lead, the
// finder says whenever one is made.
type link struct {
	client  *redis.Client
	options redis.Options
	finder  finder
	dialer  *net.Dialer
	certs   *certificates // nil: without TLS
	timing  timing
	conns   conns
	probe   string // a key of the lock, by which a cluster's nodes say who has it; may be empty
}

// caller is what a call may use: all of it reaches one server, and with a pinned
// call on one connection. It has no Do: an interface with that keeps the linker
// from leaving out what of the client nobody uses, which is 0.9 MB.
type caller interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
	EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd
	Get(ctx context.Context, key string) *redis.StringCmd
	Info(ctx context.Context, sections ...string) *redis.StringCmd
	ScriptLoad(ctx context.Context, script string) *redis.StringCmd
	Set(ctx context.Context, key string, value any, expiry time.Duration) *redis.StatusCmd
	Wait(ctx context.Context, replicas int, timeout time.Duration) *redis.IntCmd
}

// maxHops bounds how often one call is sent on: to the node that has the slot,
// from there once more when the slot has just moved, and again for a connection
// that ended meanwhile.
const maxHops = 4

// do makes a call. What it can end with, and what follows:
//
//	MOVED, in a cluster    made again, there; connections to elsewhere end
//	READONLY, CLUSTERDOWN  connections end, and the next one is to whoever is primary then
//	a connection that was ended, as above, by another call: made again
//	another network error  an error; the next connection is made to another node
//	all else               the answer, or an error
//
// While a slot moves, its keys answer nobody who asks for several of them
// (TRYAGAIN, ASK): the caller has to try again later.
//
// A call may be made twice, for scripts may.
func (l *link) do(ctx context.Context, call func(caller) error) error {
	if addr := l.finder.look(ctx); addr != "" {
		l.conns.only(addr)
	}
	var err error
	for range maxHops {
		if err = call(l.client); err == nil {
			return nil
		}
		if !l.follow(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// pinned makes a call on one connection that nothing else uses meanwhile.
func (l *link) pinned(ctx context.Context, call func(caller) error) error {
	return l.do(ctx, func(caller) error {
		conn := l.client.Conn()
		defer func() { _ = conn.Close() }()
		return call(conn)
	})
}

// follow does what an error asks for, and tells whether to make the call again.
func (l *link) follow(err error) (again bool) {
	from, _ := l.conns.last()
	if to, moved := redis.IsMovedError(err); moved {
		if !l.finder.moved(from, to) {
			return false
		}
		to, _ = l.finder.find(context.Background()) // what it has just been told
		l.conns.only(to)
		return true
	}
	switch {
	case errors.Is(err, net.ErrClosed):
		return true
	case stale(err):
		l.conns.only("")
		l.finder.failed()
	case !errors.As(err, new(redis.Error)) && !errors.Is(err, context.Canceled):
		l.finder.failed()
	}
	return false
}

// stale tells whether a server says that it is the primary no longer.
func stale(err error) bool {
	text := err.Error()
	return errors.Is(err, errReplica) || strings.Contains(text, "READONLY") ||
		redis.HasErrorPrefix(err, "CLUSTERDOWN") || redis.HasErrorPrefix(err, "MASTERDOWN")
}

// visit makes a call about keys of another slot, wherever that is, without going
// there for good.
func (l *link) visit(call func(caller) error) error {
	err := call(l.client)
	from, _ := l.conns.last()
	to, moved := redis.IsMovedError(err)
	if _, clustered := l.finder.(*nodes); !moved || !clustered {
		return err
	}
	return l.at(reachable(from, to), func(c *redis.Conn) error { return call(c) })
}

// at makes a call on a server of its own choice, on a connection of its own.
func (l *link) at(addr string, call func(*redis.Conn) error) error {
	client := l.bare(addr, l.options)
	defer func() { _ = client.Close() }()
	conn := client.Conn()
	defer func() { _ = conn.Close() }()
	return call(conn)
}

// bare makes a client for one server, whatever its role.
func (l *link) bare(addr string, options redis.Options) *redis.Client {
	options.OnConnect = nil
	options.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := l.connect(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return l.secured(ctx, conn, addr)
	}
	return redis.NewClient(&options)
}

// dial connects to whoever is the primary now. Of a cluster's nodes it takes the
// first one that is there.
func (l *link) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var err error
	for range l.finder.hosts() {
		var addr string
		if addr, err = l.finder.find(ctx); err != nil {
			return nil, err
		}
		var conn net.Conn
		if conn, err = l.connect(ctx, network, addr); err == nil {
			return l.secured(ctx, l.conns.add(conn, addr), addr)
		}
		l.finder.failed()
	}
	return nil, err
}

// connect makes the system throw away what it has not delivered when the
// connection or the process ends. Else a request that was given up could arrive
// many seconds later, after the owner's next process has taken the hold over: a
// late Shorten would then end that under it.
func (l *link) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timing.call)
	defer cancel()
	conn, err := l.dialer.DialContext(ctx, network, addr)
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		_ = tcp.SetLinger(0) // fails for a closed one only
	}
	return conn, err
}

func (l *link) secured(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	if l.certs == nil {
		return conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.timing.call)
	defer cancel()
	return l.certs.secure(ctx, conn, addr)
}

var errReplica = errors.New("READONLY this redis is a replica")

// connected looks at each new connection: a replica would answer that a hold is
// gone which it has not heard of yet, and a cluster's node has to be the one that
// has the keys, also for a subscription. Connections to elsewhere end then.
func (l *link) connected(ctx context.Context, c *redis.Conn) error {
	err := l.inspect(ctx, c)
	var refused redis.Error
	if errors.As(err, &refused) && unsaid(err) {
		err = nil
	}
	if addr, _ := l.conns.last(); err == nil && addr != "" {
		l.conns.only(addr)
	}
	return err
}

func (l *link) inspect(ctx context.Context, c *redis.Conn) error {
	if _, clustered := l.finder.(*nodes); clustered && l.probe != "" {
		return c.Exists(ctx, l.probe).Err()
	}
	info, err := c.Info(ctx, "replication").Result()
	if strings.Contains(info, "role:slave") {
		return errReplica
	}
	return err
}

// unsaid tells whether an error is only that the server does not say what it is:
// it may not be asked that, or knows no such question.
func unsaid(err error) bool {
	if _, moved := redis.IsMovedError(err); moved {
		return false
	}
	code := codeOf(err)
	return code != lockagent.CodeWrongPassword && code != lockagent.CodeNotWritable
}
