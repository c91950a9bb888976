package redisstore_test

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// failOverTTL leaves an agent time for several attempts after an election, which
// takes a few seconds.
const failOverTTL = 20 * time.Second

// runAgent runs an agent outside a pod until the test ends.
func runAgent(t *testing.T, o redisstore.Options) *lockagent.Agent {
	t.Helper()
	cfg := agentenv.Default()
	cfg.Kind, cfg.Resource, cfg.Permits = agentenv.Mutex, resource, 1
	cfg.TTL, cfg.Margin, cfg.OnLost = failOverTTL, failOverTTL/5, agentenv.LostNotify
	cfg.Dir, cfg.StateDir = t.TempDir(), t.TempDir()
	o.TTL = cfg.TTL
	a := lockagent.New(cfg, open(t, o), lockagent.Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		a.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return a
}

// awaitState waits for a state for longer than an election and a failed call take.
func awaitState(t *testing.T, a *lockagent.Agent, what string, done func(lockagent.State) bool) lockagent.State {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*failOverTTL)
	defer cancel()
	st := a.Status().Wait(ctx, done)
	if !done(st) {
		t.Fatalf("not in time: %s: %+v, error %+v", what, st, st.Error)
	}
	return st
}

func held(st lockagent.State) bool { return st.Held }

// topology is a set of servers of which one is the primary of the lock.
type topology struct {
	url     string
	primary *redistest.Server
	elected func() *redistest.Server // once there is a new primary
}

func underSentinels(t *testing.T) topology {
	s := redistest.StartSentinels(t, "min-replicas-to-write 1", "min-replicas-max-lag 3")
	return topology{s.URL(), s.Servers[0], func() *redistest.Server { return promoted(s.Servers[1:]) }}
}

func inACluster(t *testing.T) topology {
	c := redistest.StartCluster(t)
	i := c.Owner(t, mutexKey)
	return topology{c.URL(), c.Primaries[i], func() *redistest.Server { return promoted(c.Replicas[i : i+1]) }}
}

// promoted is the server that has become a primary, or nil.
func promoted(replicas []*redistest.Server) *redistest.Server {
	for _, r := range replicas {
		if info, err := r.Ask("INFO", "replication"); err == nil && strings.Contains(info, "role:master") {
			return r
		}
	}
	return nil
}

// The primary goes away with a holder and a waiter on it. The holder keeps its
// hold, on the new primary; the waiter hears of its release there. A primary that
// comes back believes for a moment that it still is one.
func TestFailOver(t *testing.T) {
	topologies := map[string]func(*testing.T) topology{"sentinel": underSentinels, "cluster": inACluster}
	for name, start := range topologies {
		t.Run(name+"/the primary is killed", func(t *testing.T) {
			t.Parallel()
			failOver(t, start(t), func(r *redistest.Server) { r.Kill() }, nil)
		})
		t.Run(name+"/the primary is frozen and thawed", func(t *testing.T) {
			t.Parallel()
			freeze := func(r *redistest.Server) {
				if err := r.Freeze(); err != nil {
					t.Error(err)
				}
			}
			failOver(t, start(t), freeze, func(r *redistest.Server) {
				if err := r.Thaw(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// failOver tells the story; comeBack may be nil.
func failOver(t *testing.T, top topology, goAway, comeBack func(*redistest.Server)) {
	o := redisstore.Options{URL: top.url}
	holder := runAgent(t, redisstore.Options{URL: top.url, Wait: 1})
	token := awaitState(t, holder, "the first hold", held).Token
	waiter := runAgent(t, o)
	awaitState(t, waiter, "a place in the queue", func(st lockagent.State) bool { return st.Position == 1 })
	owner := top.primary.Do(t, "GET", mutexKey)

	goAway(top.primary)
	var next *redistest.Server
	within(t, "an election", func() bool { next = top.elected(); return next != nil })
	elected := time.Now()
	if got := next.Do(t, "GET", mutexKey); got != owner {
		t.Fatalf("the new primary has %q as the holder, want %q", got, owner)
	}
	within(t, "the holder's renewal on the new primary", func() bool { return renewedLately(next) })
	within(t, "the waiter's subscription on the new primary", func() bool { return hasWaiter(next) })
	t.Logf("both agents had followed %s after the election", time.Since(elected).Round(time.Millisecond))
	if comeBack != nil {
		comeBack(top.primary)
	}
	if st := holder.Status().State(); !st.Held || st.Token != token || st.LastLoss != nil {
		t.Errorf("after the fail-over the holder is %+v, want token %d held and nothing lost", st, token)
	}
	if st := waiter.Status().State(); st.Held {
		t.Errorf("both hold: %+v", st)
	}
	released := time.Now()
	if err := holder.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if got := awaitState(t, waiter, "the waiter's hold", held).Token; got <= token {
		t.Errorf("the waiter has token %d, want more than %d", got, token)
	}
	t.Logf("the waiter held %s after the release", time.Since(released).Round(time.Millisecond))
}

// renewedLately tells whether the hold has its TTL but for a second.
func renewedLately(r *redistest.Server) bool {
	left, err := r.Ask("PTTL", mutexKey)
	ms, _ := strconv.Atoi(left)
	return err == nil && time.Duration(ms)*time.Millisecond > failOverTTL-time.Second
}

// hasWaiter tells whether somebody listens there for the lock.
func hasWaiter(r *redistest.Server) bool {
	channels, err := r.Ask("PUBSUB", "CHANNELS", mutexKey+":wake:*")
	return err == nil && channels == "1"
}
