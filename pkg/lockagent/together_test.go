package lockagent_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// gated is a replica whose app starts once its gate, a process of its own, has
// ended well. One that fails is started again after a pause.
type gated struct {
	*replica
	dice   *rand.Rand
	change []func(*agentenv.Config)
	gate   int
	open   bool      // the gate has ended well
	asks   time.Time // not before
	stops  int       // of an app that ran
}

func newGated(f *fleet, change ...func(*agentenv.Config)) *gated {
	first := newPod(f.t, f.server, change...).init().start()
	return &gated{replica: &replica{pod: first}, dice: f.dice, change: change}
}

// kubelet is that of a replica, but it starts the gate, and the app after it. It may
// have been about to end the agent alone, and then restarts that alone. A pod that
// is being restarted may be deleted.
func (g *gated) kubelet() {
	g.t.Helper()
	select {
	case <-g.code:
		if g.dice.IntN(3) == 0 {
			g.pod = g.killed().start()
			return
		}
		g.stopped = time.Now().Add(3 * time.Second)
		if g.appRuns {
			g.stops++
		}
	default:
	}
	switch {
	case g.stopped.IsZero():
		g.askOnce()
	case time.Now().Before(g.stopped):
	case g.dice.IntN(8) == 0:
		g.replaced()
	default:
		g.pod, g.appRuns, g.stopped = g.killed().init().start(), false, time.Time{}
		g.nextGate(0)
	}
}

// replaced is once the pod has gone and another is there.
func (g *gated) replaced() {
	g.killed()
	g.pod, g.appRuns, g.stopped = newPod(g.t, g.server, g.change...).init().start(), false, time.Time{}
	g.nextGate(0)
}

func (g *gated) nextGate(after time.Duration) {
	g.gate, g.open, g.asks = g.gate+1, false, time.Now().Add(after)
}

func (g *gated) askOnce() {
	g.t.Helper()
	if g.open || time.Now().Before(g.asks) {
		return
	}
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Second)
	defer cancel()
	if g.agent.Attempt(ctx, strconv.Itoa(g.gate)) != nil {
		return
	}
	switch st := g.state(); {
	case st.Held:
		g.open, g.appRuns = true, true
	case st.GaveUp():
		g.wantNoPlace()
		g.nextGate(10 * time.Second)
	}
}

// wantNoPlace sees that nothing is in the store of an attempt that has failed.
func (g *gated) wantNoPlace() {
	g.t.Helper()
	owners := append(g.server.Holders(), g.server.Queue()...)
	for _, c := range g.store.Calls() {
		if slices.Contains(owners, c.Owner) {
			g.t.Fatalf("%s still holds or waits\n%s", c.Owner, g.log)
		}
	}
}

// disturb does something to the pod that no agent can help.
func (g *gated) disturb(dice *rand.Rand) {
	switch dice.IntN(6) {
	case 0: // it is deleted
		g.prestop()
		g.appRuns = false
		sleep(time.Duration(dice.IntN(3000)) * time.Millisecond)
		g.term()
		<-g.ended
		g.replaced()
	case 1: // the gate alone is killed
		if !g.open {
			g.nextGate(0)
		}
	default:
		before := g.epoch()
		g.replica.disturb(dice)
		if g.epoch() != before {
			g.nextGate(0)
		}
	}
}

func (g *gated) epoch() string { return g.read(g.cfg.StateDir, "epoch") }

// fleet are the pods of two Deployments that are rolled out, and others, which
// want one lock; some of them not for ever.
type fleet struct {
	t       *testing.T
	dice    *rand.Rand
	server  *memstore.Server
	permits int
	pods    []*gated
	newest  int64          // revision
	tokens  map[int64]bool // that were seen
	last    int64          // the greatest of them
}

func newFleet(t *testing.T, kind agentenv.Kind, seed uint64) *fleet {
	f := &fleet{t: t, dice: rand.New(rand.NewPCG(seed, 4)), server: memstore.NewServer(), permits: 1, newest: 12, tokens: map[int64]bool{}}
	lock := func(*agentenv.Config) {}
	if kind == agentenv.Semaphore {
		f.permits = 2
		lock = permits(2)
	}
	db := func(c *agentenv.Config) { c.Workload = "db" }
	for _, change := range [][]func(*agentenv.Config){
		{lock, revision(1)},
		{lock, revision(2), waitTimeout(40 * time.Second)},
		{lock, revision(3), waitTimeout(2 * time.Minute)},
		{lock, revision(11), db},
		{lock, revision(12), db},
		{lock, onBusyFail},
		{lock, waitTimeout(20 * time.Second)},
	} {
		f.pods = append(f.pods, newGated(f, change...))
	}
	return f
}

// quarter lets a quarter of a second go by, and tells whether anyone holds.
func (f *fleet) quarter() bool {
	f.t.Helper()
	sleep(250 * time.Millisecond)
	busy, held, before := 0, false, f.last
	for _, g := range f.pods {
		g.kubelet()
		st := g.state()
		if st.Held || g.appRuns {
			busy++
		}
		if st.Held {
			held = true
			if f.permits == 1 && !f.tokens[st.Token] && st.Token <= before {
				f.t.Fatalf("token %d after %d", st.Token, before)
			}
			f.tokens[st.Token], f.last = true, max(f.last, st.Token)
		}
	}
	if busy > f.permits {
		f.fatal("%d hold, or run, at once", busy)
	}
	return held
}

func (f *fleet) fatal(format string, args ...any) {
	f.t.Helper()
	for i, g := range f.pods {
		f.t.Logf("pod %d, app runs %t: %+v, %+v\n%s", i, g.appRuns, g.state(), g.state().Error, g.log)
	}
	f.t.Fatalf(format, args...)
}

// disturbed lets time go by in which all goes wrong.
func (f *fleet) disturbed(quarters int) {
	f.t.Helper()
	for range quarters {
		f.quarter()
		switch g := f.pods[f.dice.IntN(len(f.pods))]; {
		case f.dice.IntN(20) == 0 && g.stopped.IsZero():
			g.disturb(f.dice)
		case f.dice.IntN(400) == 0 && g.cfg.ReplicaSet != "":
			f.newest++
			f.server.Publish(g.cfg.ReplicaSet, f.newest)
		}
	}
}

// undisturbed lets time go by in which nothing does: then someone always holds,
// but for the time that a lease or a stop takes, and soon no app is stopped.
func (f *fleet) undisturbed(quarters int) {
	f.t.Helper()
	for _, g := range f.pods {
		g.store.Intercept(nil)
		g.stops = 0
	}
	idle, stops := 0, 0
	for range quarters {
		if idle++; f.quarter() {
			idle = 0
		}
		if idle > 4*60 {
			f.fatal("nobody has held for a minute")
		}
	}
	for _, g := range f.pods {
		stops += g.stops
	}
	if most := 4 * f.permits; stops > most {
		f.fatal("apps were stopped %d times though nothing was wrong, want at most %d", stops, most)
	}
}

// Rollouts of two Deployments and their undoing, waits that end, gates, pods that
// are deleted, and every fault there is, on one lock.
func TestAllThatEndsAHoldOrAWaitTogether(t *testing.T) {
	for _, kind := range []agentenv.Kind{agentenv.Mutex, agentenv.Semaphore} {
		bubble(t, string(kind), func(t *testing.T) {
			f := newFleet(t, kind, 1)
			f.disturbed(10 * 60 * 4)
			f.undisturbed(8 * 60 * 4)
		})
	}
}
