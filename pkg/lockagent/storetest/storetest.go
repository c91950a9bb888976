// Package storetest is what every [lockagent.Store] must pass: the rules of the
// interface, each told as a small story of owners who want one lock.
package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Harness is a server with nothing in it.
type Harness struct {
	// Open returns another Store over the same server.
	Open func(t *testing.T, kind agentenv.Kind, resource string) lockagent.Store
	// Advance lets time pass on the server, without waiting.
	Advance func(t *testing.T, d time.Duration)
}

// Run holds the Store of each Harness that start gives to the rules.
func Run(t *testing.T, start func(*testing.T) Harness) {
	groups := map[string]map[string]func(*scene){
		"holding":   holding,
		"queue":     queue,
		"offers":    offers,
		"permits":   permits,
		"listening": listening,
		"looking":   looking,
		"handoff":   handoff,
		"undo":      undo,
	}
	for group, rules := range groups {
		for name, rule := range rules {
			t.Run(group+"/"+name, func(t *testing.T) { rule(&scene{T: t, Harness: start(t)}) })
		}
	}
}

const (
	ttl      = 30 * time.Second
	offerTTL = 3 * time.Second
	// soon is as long as a step may take on a slow machine whose server clock
	// moves by itself.
	soon = 10 * time.Second
)

// scene is one rule's server and the owners on it.
type scene struct {
	*testing.T
	Harness
}

// owner is one agent: a claim and a store of its own.
type owner struct {
	s     *scene
	name  string
	store lockagent.Store
	claim lockagent.Claim
	wakes <-chan lockagent.Wake
}

const resource = "orders/etl"

var owners atomic.Int64

func (s *scene) mutex(name string, change ...func(*lockagent.Claim)) *owner {
	return s.owner(agentenv.Mutex, name, 1, change)
}

func (s *scene) semaphore(name string, permits int, change ...func(*lockagent.Claim)) *owner {
	return s.owner(agentenv.Semaphore, name, permits, change)
}

func (s *scene) owner(kind agentenv.Kind, name string, permits int, change []func(*lockagent.Claim)) *owner {
	s.Helper()
	o := &owner{s: s, name: name, store: s.Open(s.T, kind, resource), claim: lockagent.Claim{
		Owner: fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), owners.Add(1)), Permits: permits, TTL: ttl,
		Pod: name, Namespace: "orders", Node: "node-1",
	}}
	for _, c := range change {
		c(&o.claim)
	}
	return o
}

func priority(p int) func(*lockagent.Claim) {
	return func(c *lockagent.Claim) { c.Priority = p }
}

func shortTTL(d time.Duration) func(*lockagent.Claim) {
	return func(c *lockagent.Claim) { c.TTL = d }
}

func (s *scene) pass(d time.Duration) {
	s.Helper()
	s.Advance(s.T, d)
}

func (s *scene) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	s.Cleanup(cancel)
	return ctx
}

func (o *owner) acquire() lockagent.Answer {
	o.s.Helper()
	a, err := o.store.Acquire(o.s.ctx(), o.claim)
	if err != nil {
		o.s.Fatalf("%s: %v", o.name, err)
	}
	return a
}

// takes expects to be granted and returns the token.
func (o *owner) takes() int64 {
	o.s.Helper()
	a := o.acquire()
	if !a.Granted || a.Token <= 0 {
		o.s.Fatalf("%s is not granted the lock: %+v", o.name, a)
	}
	return a.Token
}

// waits expects to be queued at the position.
func (o *owner) waits(position int) lockagent.Answer {
	o.s.Helper()
	a := o.acquire()
	if a.Granted || a.Position != position {
		o.s.Fatalf("%s: got %+v, want to wait at position %d", o.name, a, position)
	}
	return a
}

// renews expects the outcome and returns the token.
func (o *owner) renews(want lockagent.Outcome) int64 {
	o.s.Helper()
	r, err := o.store.Renew(o.s.ctx(), o.claim)
	return o.outcome("renew", r, err, want)
}

// shortens expects the outcome and returns the token.
func (o *owner) shortens(ttl time.Duration, want lockagent.Outcome) int64 {
	o.s.Helper()
	r, err := o.store.Shorten(o.s.ctx(), o.claim, ttl)
	return o.outcome("shorten", r, err, want)
}

func (o *owner) outcome(op string, r lockagent.Renewal, err error, want lockagent.Outcome) int64 {
	o.s.Helper()
	if err != nil {
		o.s.Fatalf("%s: %v", o.name, err)
	}
	if r.Outcome != want {
		o.s.Fatalf("%s: %s gives %q, want %q", o.name, op, r.Outcome, want)
	}
	return r.Token
}

// releases expects that there was a hold to end, or not.
func (o *owner) releases(want bool) {
	o.s.Helper()
	got, err := o.store.Release(o.s.ctx(), o.claim)
	if err != nil {
		o.s.Fatalf("%s: %v", o.name, err)
	}
	if got != want {
		o.s.Fatalf("%s: release gives %t, want %t", o.name, got, want)
	}
}

// listens opens the owner's channel.
func (o *owner) listens() *owner {
	o.s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o.s.Cleanup(cancel)
	wakes, err := o.store.Listen(ctx, o.claim)
	if err != nil {
		o.s.Fatalf("%s: %v", o.name, err)
	}
	o.wakes = wakes
	return o
}

// hears expects the next message to be of the kind and returns it.
func (o *owner) hears(want lockagent.WakeKind) lockagent.Wake {
	o.s.Helper()
	select {
	case w, open := <-o.wakes:
		if !open || w.Kind != want {
			o.s.Fatalf("%s hears %+v, want %q", o.name, w, want)
		}
		return w
	case <-time.After(soon):
		o.s.Fatalf("%s hears nothing, want %q", o.name, want)
	}
	panic("unreachable")
}
