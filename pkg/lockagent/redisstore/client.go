package redisstore

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// timing derives the connection's times from the TTL, so that a call that hangs
// leaves room for several more before a hold is lost.
type timing struct {
	call      time.Duration // to dial, to write, to wait for an answer
	keepAlive time.Duration // silence after which TCP asks whether the other end lives
	maxPause  time.Duration // between two attempts to subscribe again
	look      time.Duration // between two questions to Sentinels
}

func timingOf(ttl time.Duration) timing {
	return timing{call: max(ttl/6, time.Millisecond), keepAlive: ttl / 3, maxPause: ttl / 3, look: ttl / 4}
}

// newLink prepares the way to an address; it connects only when first used. probe
// is a key of the lock, or empty for one without a slot of its own.
func newLink(a address, o Options, t timing, probe string) *link {
	// The client would write to stderr by itself; what matters comes as an error.
	logging.Disable()
	l := &link{timing: t, probe: probe, dialer: &net.Dialer{Timeout: t.call, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: t.keepAlive, Interval: max(t.keepAlive/3, time.Second), Count: 3,
	}}}
	if a.tls {
		l.certs = &certificates{caFile: o.CAFile, certFile: o.CertFile, keyFile: o.KeyFile, serverName: a.serverName}
	}
	l.options = clientOptions(t)
	l.options.Network, l.options.Addr, l.options.DB = a.network, a.hosts[0], a.db
	l.options.CredentialsProviderContext = loginOf("redis", a, o.UsernameFile, o.PasswordFile)
	l.options.Dialer = l.dial
	l.options.OnConnect = l.connected
	l.finder = l.finderOf(a, o)
	options := l.options
	l.client = redis.NewClient(&options)
	return l
}

func (l *link) finderOf(a address, o Options) finder {
	switch a.form {
	case cluster:
		return &nodes{seeds: a.hosts}
	case sentinel:
		options := clientOptions(l.timing)
		options.CredentialsProviderContext = loginOf("sentinel", a, o.SentinelUsernameFile, o.SentinelPasswordFile)
		return &sentinels{
			master: a.master, addrs: a.hosts, call: l.timing.call, every: l.timing.look,
			client: func(addr string) *redis.Client { return l.bare(addr, options) },
		}
	default:
		return fixed(a.hosts[0])
	}
}

func loginOf(server string, a address, usernameFile, passwordFile string) func(context.Context) (string, string, error) {
	who := login{server, usernameFile, passwordFile, a.username, a.password}
	return func(context.Context) (string, string, error) { return who.read() }
}

func clientOptions(t timing) redis.Options {
	return redis.Options{
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
