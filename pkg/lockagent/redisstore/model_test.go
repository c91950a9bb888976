package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
)

// The model test lets random agents do random things to one lock, with the real
// scripts and a clock of its own: requests that arrive late or in another order,
// answers that are lost or late, waiters that are paused or die, holders that
// release, shorten or crash, and, in a rollout, are asked to yield and hand over. After each step the rules of check hold; at the end everyone who
// is still there gets its turn.

func TestModelOfMutex(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { live(rt, agentenv.Mutex, false) })
}

func TestModelOfSemaphore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { live(rt, agentenv.Semaphore, false) })
}

func TestCaseB01ModelOfARollout(t *testing.T) {
	for kind := range lockKeys {
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { live(rt, kind, true) })
		})
	}
}

// world is a Redis, its clock, its network and the agents.
type world struct {
	*rapid.T
	kind   agentenv.Kind
	rolls  bool // most agents are revisions of one workload
	server *miniredis.Miniredis
	store  *redisstore.Store // it keeps no state, so that one is enough for all
	now    time.Time
	agents []*agent
	onWay  []func()         // requests and answers that have not arrived
	newest int64            // the greatest token so far
	tokens map[string]int64 // of the live holders, as last seen
}

func live(rt *rapid.T, kind agentenv.Kind, rolls bool) {
	w := newWorld(rt, kind)
	w.rolls = rolls
	for i := 0; rolls && i < 4; i++ {
		w.newAgent()
	}
	defer w.server.Close()
	defer func() { _ = w.store.Close() }()
	defer func() {
		for _, a := range w.agents {
			a.unsubscribe()
		}
	}()
	steps := rapid.IntRange(10, 120).Draw(rt, "steps")
	for range steps {
		w.step()
		w.settle()
		w.check()
	}
	w.drain()
}

func newWorld(rt *rapid.T, kind agentenv.Kind) *world {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		rt.Fatal(err)
	}
	w := &world{
		T: rt, kind: kind, server: m,
		now:    time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC),
		tokens: map[string]int64{},
	}
	m.SetTime(w.now)
	m.ClockTTL(true)
	store, err := redisstore.Open(redisstore.Options{URL: "redis://" + m.Addr(), Kind: kind, Resource: resource})
	if err != nil {
		rt.Fatal(err)
	}
	w.store = store
	return w
}

func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.server.SetTime(w.now)
}

// step does one random thing.
func (w *world) step() {
	kinds := []string{"arrive", "pass", "new"}
	if len(w.agents) > 0 {
		kinds = append(kinds, "act", "act", "act", "act", "acquire", "acquire", "renew", "release", "shorten", "crash", "pause", "hear")
	}
	if w.rolls {
		kinds = append(kinds, slices.Repeat([]string{"roll"}, 20)...)
	}
	what := rapid.SampledFrom(kinds).Draw(w.T, "what")
	switch what {
	case "arrive":
		w.arrive()
		return
	case "pass":
		w.pass(rapid.SampledFrom([]time.Duration{
			time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 31 * time.Second,
		}).Draw(w.T, "for"))
		return
	case "new":
		w.newAgent()
		return
	case "roll":
		w.roll()
		return
	}
	a := rapid.SampledFrom(w.agents).Draw(w.T, "agent")
	switch {
	case a.ended:
	case what == "pause":
		a.paused = !a.paused
	case a.paused:
	case what == "crash":
		a.end()
	case what == "hear":
		a.unsubscribe()
		a.subscribe(w)
	default:
		w.send(a, what)
	}
}

// roll lets a rollout go on: time enough to ask passes, and everyone calls. Now and
// then one is undone.
func (w *world) roll() {
	w.pass(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 2100 * time.Millisecond}).Draw(w.T, "for"))
	for _, a := range w.agents {
		if a.ended || a.paused {
			continue
		}
		if rapid.IntRange(0, 15).Draw(w.T, "undone") == 15 {
			a.claim.Revision += 2
		}
		w.send(a, "act")
	}
}

// arrive lets something that is on its way arrive, out of order.
func (w *world) arrive() {
	if len(w.onWay) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.onWay)-1).Draw(w.T, "which")
	arrived := w.onWay[i]
	w.onWay = append(w.onWay[:i], w.onWay[i+1:]...)
	arrived()
}

// send makes a call over a bad network.
func (w *world) send(a *agent, what string) {
	request := a.request(w, what)
	switch rapid.SampledFrom([]string{"well", "well", "well", "answer lost", "answer late", "request late"}).Draw(w.T, "goes") {
	case "well":
		request()()
	case "answer lost":
		request()
	case "answer late":
		w.onWay = append(w.onWay, request())
	case "request late":
		w.onWay = append(w.onWay, func() { request()() })
	}
}

// settle returns when every message that was sent is in its mailbox: a reader
// that has taken one more has stored those before.
func (w *world) settle() {
	for _, a := range w.agents {
		if a.sub != nil {
			w.server.Publish(a.channel, "settle")
		}
	}
}

// drain repairs everything and lets all agents behave. Everyone who is still
// there must get its turn: first the dead ones' leases run out, then each waits
// for those before it, for their second of work and the time until it looks.
func (w *world) drain() {
	for len(w.onWay) > 0 {
		arrived := w.onWay[0]
		w.onWay = w.onWay[1:]
		arrived()
	}
	left := 0
	for _, a := range w.agents {
		a.paused = false
		if !a.ended {
			left++
		}
	}
	const beat = 100 * time.Millisecond
	patience := longestTTL + offerTime + time.Duration(left)*(longestTTL/3+2*time.Second)
	for waited := time.Duration(0); left > 0; waited += beat {
		if waited > patience {
			w.Fatalf("%d agents did not get their turn within %s:\n%s", left, patience, w.server.Dump())
		}
		for _, a := range w.agents {
			if !a.ended && a.behave(w) {
				left--
			}
			w.settle()
			w.check()
		}
		w.pass(beat)
	}
	w.pass(time.Hour)
	fence := w.store.Keys()[1]
	for _, key := range w.server.Keys() {
		if key != fence {
			w.Errorf("%s is left an hour after everyone has gone", key)
		}
	}
}

const (
	longestTTL = 30 * time.Second
	offerTime  = 3 * time.Second
)

func (w *world) ctx() context.Context { return context.Background() }

func (w *world) must(what string, err error) {
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

func (w *world) newAgent() {
	if len(w.agents) >= 12 {
		return
	}
	a := &agent{}
	a.claim.Owner = fmt.Sprintf("agent-%d", len(w.agents))
	a.claim.TTL = rapid.SampledFrom([]time.Duration{time.Second, 4 * time.Second, 10 * time.Second, longestTTL}).Draw(w.T, "ttl")
	a.claim.Priority = rapid.SampledFrom([]int{0, 0, 0, -100, 100}).Draw(w.T, "priority")
	a.claim.Permits = 1
	if w.kind == agentenv.Semaphore {
		a.claim.Permits = rapid.IntRange(1, 4).Draw(w.T, "permits")
	}
	if w.rolls {
		a.claim.Workload = rapid.SampledFrom([]string{"", "web", "web", "web", "db"}).Draw(w.T, "workload")
		a.claim.Revision = rapid.Int64Range(1, 3).Draw(w.T, "revision")
		a.yields = rapid.IntRange(0, 7).Draw(w.T, "yields") > 0
		a.claim.TTL = max(a.claim.TTL, 10*time.Second)
	}
	w.agents = append(w.agents, a)
	if rapid.IntRange(0, 4).Draw(w.T, "hears") > 0 {
		a.subscribe(w)
	}
	w.send(a, "acquire")
}
