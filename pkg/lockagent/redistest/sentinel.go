package redistest

import (
	"net"
	"slices"
	"strings"
	"testing"
)

// Master is the name by which the Sentinels of [StartSentinels] know the primary.
const Master = "main"

// Sentinels are three Sentinels that watch one primary and two replicas, and make
// a replica the primary when the primary has been silent for a second.
type Sentinels struct {
	Servers  []*Server // the primary comes first
	Watchers []*Server
}

// StartSentinels runs them until the test ends. Each argument of config is a line
// for the three servers.
func StartSentinels(tb testing.TB, config ...string) *Sentinels {
	tb.Helper()
	primary := Start(tb, config...)
	return WatchedAt(tb, primary, primary.Addr, "127.0.0.1", config...)
}

// WatchedAt is as [StartSentinels] for a primary that runs already. Replicas and
// Sentinels reach it at an address that may not be its own, and come from an IP
// address.
func WatchedAt(tb testing.TB, primary *Server, at, from string, config ...string) *Sentinels {
	tb.Helper()
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		tb.Fatal(err)
	}
	source := []string{"protected-mode no"} // it lets nobody in but 127.0.0.1
	if from != "127.0.0.1" {                // the option is of 7.0
		source = append(source, "bind-source-addr "+from)
	}
	s := &Sentinels{Servers: []*Server{primary}}
	for range 2 {
		follow := slices.Concat([]string{"replicaof " + host + " " + port, "repl-diskless-sync-delay 0"}, source, config)
		s.Servers = append(s.Servers, Start(tb, follow...))
	}
	for _, replica := range s.Servers[1:] {
		replica.Await(tb, "master_link_status:up", "INFO", "replication")
	}
	for range 3 {
		s.Watchers = append(s.Watchers, run(tb, []string{"--sentinel"}, slices.Concat(source, []string{
			"bind 127.0.0.1", "port PORT", "sentinel announce-ip 127.0.0.1",
			"sentinel monitor " + Master + " " + host + " " + port + " 2",
			"sentinel down-after-milliseconds " + Master + " 1000",
			"sentinel failover-timeout " + Master + " 5000",
		})))
	}
	for _, w := range s.Watchers {
		w.Await(tb, "slaves=2,sentinels=3", "INFO", "sentinel")
	}
	return s
}

// URL is the Sentinels' address.
func (s *Sentinels) URL() string {
	return "redis+sentinel://" + strings.Join(addrs(s.Watchers), ",") + "/" + Master
}

// Primary is the server that calls itself so; of two, the one that was made
// primary.
func (s *Sentinels) Primary(tb testing.TB) *Server {
	tb.Helper()
	for i := len(s.Servers) - 1; i > 0; i-- {
		if info, err := s.Servers[i].Ask("INFO", "replication"); err == nil && strings.Contains(info, "role:master") {
			return s.Servers[i]
		}
	}
	return s.Servers[0]
}

func addrs(servers []*Server) []string {
	var out []string
	for _, s := range servers {
		out = append(out, s.Addr)
	}
	return out
}
