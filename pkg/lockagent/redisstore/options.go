package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Options say which lock, in which Redis. The comment of each field ends with
// its default.
type Options struct {
	URL          string        // redis://HOST:PORT[/DB] or unix:///PATH[?db=DB]; this or URLFile is required
	URLFile      string        // file that holds the URL, read by Open
	UsernameFile string        // file that holds the ACL user, read for each connection; the URL's
	PasswordFile string        // file that holds the password, read for each connection; the URL's
	Kind         agentenv.Kind // mutex or semaphore; required
	Resource     string        // the lock's full name; required
	TTL          time.Duration // of the claims to come: time-outs are parts of it; 30s
}

// Open prepares a Store. It reads the URL but connects only when first used. An
// error names the option that is wrong, and never contains a password.
func Open(o Options) (*Store, error) {
	if o.TTL == 0 {
		o.TTL = agentenv.Default().TTL
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	raw, err := o.url()
	if err != nil {
		return nil, err
	}
	addr, err := parseAddress(raw)
	if err != nil {
		return nil, err
	}
	s := &Store{
		kind: o.Kind, resource: o.Resource, keys: keysOf(o.Kind, o.Resource),
		timing: timingOf(o.TTL),
	}
	s.client = redis.NewClient(clientOptions(addr, o, s.timing))
	s.closed, s.close = context.WithCancel(context.Background())
	return s, nil
}

func (o Options) check() error {
	var errs []error
	if o.Kind != agentenv.Mutex && o.Kind != agentenv.Semaphore {
		errs = append(errs, fmt.Errorf("kind %q must be mutex or semaphore", o.Kind))
	}
	if o.Resource == "" || strings.ContainsAny(o.Resource, "{}") {
		errs = append(errs, fmt.Errorf("resource %q must be a name without braces", o.Resource))
	}
	if o.TTL < minTTL || o.TTL > maxTTL {
		errs = append(errs, fmt.Errorf("ttl %s must be at least 1ms and under 30m", o.TTL))
	}
	return errors.Join(errs...)
}

func (o Options) url() (string, error) {
	switch {
	case o.URL != "" && o.URLFile != "":
		return "", errors.New("the redis url is given twice, as a value and as a file: keep one of them")
	case o.URL != "":
		return o.URL, nil
	case o.URLFile != "":
		text, err := readTrimmed(o.URLFile)
		if err != nil {
			return "", fmt.Errorf("the redis url: %w", err)
		}
		return text, nil
	default:
		return "", errors.New("the redis url is missing: set it to an address such as redis://127.0.0.1:6379")
	}
}

// timing derives the connection's times from the TTL, so that a call that hangs
// leaves room for several more before a hold is lost.
type timing struct {
	call      time.Duration // to dial, to write, to wait for an answer
	keepAlive time.Duration // silence after which TCP asks whether the other end lives
	maxPause  time.Duration // between two attempts to subscribe again
}

func timingOf(ttl time.Duration) timing {
	return timing{call: max(ttl/6, time.Millisecond), keepAlive: ttl / 3, maxPause: ttl / 3}
}

func clientOptions(addr address, o Options, t timing) *redis.Options {
	// The client would write to stderr by itself; what matters comes as an error.
	logging.Disable()
	dialer := &net.Dialer{Timeout: t.call, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: t.keepAlive, Interval: max(t.keepAlive/3, time.Second), Count: 3,
	}}
	return &redis.Options{
		Network: addr.network,
		Addr:    addr.addr,
		DB:      addr.db,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return forgetful(dialer.DialContext(ctx, network, addr))
		},
		CredentialsProviderContext: func(context.Context) (string, string, error) {
			return credentials(addr, o)
		},
		OnConnect: func(ctx context.Context, c *redis.Conn) error {
			// A Redis that wants a login refuses a long command by closing the
			// connection, so that its reason can get lost. A short one it answers.
			if _, password, err := credentials(addr, o); err != nil || password != "" {
				return err
			}
			return c.Ping(ctx).Err()
		},

		// Who calls decides about retries, and its deadline counts on the socket too.
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		DialTimeout:           t.call,
		ReadTimeout:           t.call,
		WriteTimeout:          t.call,
		PoolTimeout:           t.call,

		// One connection, and a second one while a call hangs on the first.
		PoolSize:         2,
		MaxIdleConns:     1,
		PipelinePoolSize: -1,
		ReadBufferSize:   1 << 10,
		WriteBufferSize:  4 << 10, // a script is loaded in one piece

		// Nothing that this package does not need is sent on a new connection.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// forgetful makes the system throw away what it has not delivered when the
// connection or the process ends. Else a request that was given up could arrive
// many seconds later, after the owner's next process has taken the hold over: a
// late Shorten would then end that under it.
func forgetful(conn net.Conn, err error) (net.Conn, error) {
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		_ = tcp.SetLinger(0) // fails for a closed one only
	}
	return conn, err
}

// credentials are read anew for each connection, so that a rotated secret needs
// no restart. A file that is not there is a key that the Secret does not have:
// then the URL's counts.
func credentials(addr address, o Options) (username, password string, err error) {
	if username, err = secret(o.UsernameFile, addr.username); err != nil {
		return "", "", fmt.Errorf("the redis username: %w", err)
	}
	if password, err = secret(o.PasswordFile, addr.password); err != nil {
		return "", "", fmt.Errorf("the redis password: %w", err)
	}
	return username, password, nil
}

func secret(file, otherwise string) (string, error) {
	if file == "" {
		return otherwise, nil
	}
	text, err := readTrimmed(file)
	if errors.Is(err, fs.ErrNotExist) {
		return otherwise, nil
	}
	return text, err
}

// readTrimmed reads a file without the newline that editors and shells leave at
// its end.
func readTrimmed(name string) (string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}
