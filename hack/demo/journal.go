package main

import (
	"context"
	"sync"
	"time"
)

// what is a kind of event in the life of a pod.
type what string

const (
	agentStarted what = "agent started"
	gateOpened   what = "gate opened" // the agent's startup probe was answered: it holds
	appStarted   what = "app started" // recorded before the process exists
	appEnded     what = "app ended"   // recorded after its last process is gone
	agentEnded   what = "agent ended"
	podRestarted what = "pod restarted" // in place, from its init containers
	podEnded     what = "pod ended"
)

// event is one thing that the demo itself saw happen to a pod. Nothing in it
// comes from the agents or from Redis, but for the token, so it can convict them.
type event struct {
	at    time.Time // when; of this process, so all events compare by one monotonic clock
	what  what
	pod   string
	lock  string // the resource that the pod asks for
	token int64  // with gateOpened, appStarted and appEnded: what the agent told the app
	exit  int    // with appEnded and agentEnded: the exit code, -1 after a signal
}

// journal keeps all events, in the order in which they were recorded.
type journal struct {
	tell func(event) // told of each before anybody else; may be nil

	mu      sync.Mutex
	events  []event
	changed chan struct{} // closed at the next event
}

func newJournal(tell func(event)) *journal {
	return &journal{tell: tell, changed: make(chan struct{})}
}

// record adds e, at this moment.
func (j *journal) record(e event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.at = time.Now()
	j.events = append(j.events, e)
	if j.tell != nil {
		j.tell(e)
	}
	close(j.changed)
	j.changed = make(chan struct{})
}

// all returns what has happened so far.
func (j *journal) all() []event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events[:len(j.events):len(j.events)]
}

// at returns event number n, counted from 0, once there is one, or ctx's cause if
// that ends first.
func (j *journal) at(ctx context.Context, n int) (event, error) {
	for {
		j.mu.Lock()
		events, changed := j.events, j.changed
		j.mu.Unlock()
		if n < len(events) {
			return events[n], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return event{}, context.Cause(ctx)
		}
	}
}

// wait returns the first event, not before the moment after, for which match is
// true, or ctx's cause if that ends first.
func (j *journal) wait(ctx context.Context, after time.Time, match func(event) bool) (event, error) {
	for n := 0; ; n++ {
		e, err := j.at(ctx, n)
		if err != nil || !e.at.Before(after) && match(e) {
			return e, err
		}
	}
}
