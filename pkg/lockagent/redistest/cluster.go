package redistest

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// slots is how many a cluster has.
const slots = 16384

// Cluster is three primaries, with a third of the slots each, and a replica of
// each of them, which becomes the primary when that has been silent for a second.
type Cluster struct {
	Primaries []*Server
	Replicas  []*Server // in the order of the primaries
}

// StartCluster runs one until the test ends. Each argument of config is a line for
// all servers.
func StartCluster(tb testing.TB, config ...string) *Cluster {
	tb.Helper()
	config = append([]string{
		"cluster-enabled yes", "cluster-config-file DIR/nodes.conf", "cluster-node-timeout 1000",
		"cluster-replica-validity-factor 0", "repl-diskless-sync-delay 0",
	}, config...)
	c := &Cluster{}
	for range 3 {
		c.Primaries = append(c.Primaries, Start(tb, config...))
		c.Replicas = append(c.Replicas, Start(tb, config...))
	}
	for i, p := range c.Primaries {
		words := []string{"CLUSTER", "ADDSLOTS"} // ADDSLOTSRANGE is of 7.0
		for slot := i * slots / 3; slot < (i+1)*slots/3; slot++ {
			words = append(words, fmt.Sprint(slot))
		}
		p.Do(tb, words...)
	}
	for _, s := range c.Servers()[1:] {
		host, port, _ := net.SplitHostPort(c.Primaries[0].Addr)
		s.Do(tb, "CLUSTER", "MEET", host, port)
	}
	for i, r := range c.Replicas {
		id := c.Primaries[i].Do(tb, "CLUSTER", "MYID")
		r.Await(tb, id, "CLUSTER", "NODES")
		r.Do(tb, "CLUSTER", "REPLICATE", id)
	}
	for _, s := range c.Servers() {
		s.Await(tb, "cluster_state:ok", "CLUSTER", "INFO")
	}
	for _, r := range c.Replicas {
		r.Await(tb, "master_link_status:up", "INFO", "replication")
	}
	return c
}

// Servers are all of them, the first primary first.
func (c *Cluster) Servers() []*Server {
	return append(append([]*Server(nil), c.Primaries...), c.Replicas...)
}

// URL is the cluster's address.
func (c *Cluster) URL() string { return "redis+cluster://" + strings.Join(addrs(c.Servers()), ",") }

// Owner is the place of the primary that has the key's slot.
func (c *Cluster) Owner(tb testing.TB, key string) int {
	tb.Helper()
	var slot int
	if _, err := fmt.Sscan(c.Primaries[0].Do(tb, "CLUSTER", "KEYSLOT", key), &slot); err != nil {
		tb.Fatal(err)
	}
	for i := range c.Primaries {
		if slot < (i+1)*slots/3 {
			return i
		}
	}
	return len(c.Primaries) - 1
}
