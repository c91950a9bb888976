package redisstore_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/storetest"
)

func TestContractOnMiniredis(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		s := startMini(t)
		s.expiresInTheEnd(t)
		return s.harness()
	})
}

func TestContractOnRedis(t *testing.T) { contract(t, startReal(t)) }

func TestContractOverTLS(t *testing.T) {
	t.Parallel()
	contract(t, startTLS(t))
}

func TestContractUnderSentinels(t *testing.T) {
	t.Parallel()
	contract(t, startSentinels(t))
}

func TestContractOnACluster(t *testing.T) {
	t.Parallel()
	contract(t, startCluster(t))
}

// contract gives a server that is emptied each time to the rules.
func contract(t *testing.T, s server) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		for _, raw := range s.primaries() {
			if err := raw.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		s.expiresInTheEnd(t)
		return s.harness()
	})
}

// expiresInTheEnd looks once a rule has been told: whatever its owners have done,
// no key stays for ever.
func (s server) expiresInTheEnd(t *testing.T) {
	t.Cleanup(func() {
		for _, raw := range s.primaries() {
			found, err := raw.Keys(context.Background(), "*").Result()
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range found {
				if left := raw.PTTL(context.Background(), key).Val(); left == -1 {
					t.Errorf("%s never expires", key)
				}
			}
		}
	})
}

// startTLS speaks nothing else, and wants a certificate of the agent too.
func startTLS(t *testing.T) server {
	ca := redistest.NewAuthority(t)
	r := redistest.Start(t, append(ca.ServerConfig(t), "tls-auth-clients yes")...)
	cert, key := ca.Issue(t, "agent.test")
	s := realServer(t, "rediss://"+r.Addr+"?server-name=redis.test", r)
	s.options = redisstore.Options{CAFile: ca.CAFile, CertFile: cert, KeyFile: key}
	return s
}

func startSentinels(t *testing.T) server {
	watched := redistest.StartSentinels(t)
	return realServer(t, watched.URL(), watched.Servers[0])
}

func startCluster(t *testing.T) server {
	c := redistest.StartCluster(t)
	return realServer(t, c.URL(), c.Primaries...)
}

// realServer is looked at behind the Store through unix sockets, where there is
// neither TLS nor a cluster's redirection.
func realServer(t *testing.T, url string, primaries ...*redistest.Server) server {
	s := server{url: url}
	for _, r := range primaries {
		c := redis.NewClient(&redis.Options{Network: "unix", Addr: r.Socket, Protocol: 2, DisableIdentity: true})
		t.Cleanup(func() { _ = c.Close() })
		s.others = append(s.others, c)
	}
	s.raw, s.others = s.others[0], s.others[1:]
	s.advance = s.bringForward
	return s
}
