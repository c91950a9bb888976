package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// askAgain is the pause after an agent that did not answer: it may be starting.
const askAgain = 100 * time.Millisecond

// askEvery is how long one question waits, and so how soon the gate says what is
// in the agent's way.
const askEvery = 10 * time.Second

// gate ends once the running agent holds the lock, or with an error when the agent
// has given up, or on TERM. It is the command of the init container before the
// app, and what the app waits for.
func gate(p program) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	socket, self := p.socket(), url.Values{"gate": {uuid.NewString()}}
	return p.awaitHeld(ctx, func() (lockagent.State, error) {
		return askOnce(socket, http.MethodPost, "/v1/attempt", self, askEvery)
	})
}

// awaitHeld asks again and again until the lock is held, or the agent has given
// up. An agent that does not answer is no reason to end, nor is a Redis that does
// not: in a pod that is never restarted that would be the pod's failure.
func (p program) awaitHeld(ctx context.Context, once func() (lockagent.State, error)) int {
	complaint := ""
	for ctx.Err() == nil {
		st, err := askUntil(ctx, once)
		switch {
		case ctx.Err() != nil:
		case err == nil && st.Held:
			_, _ = fmt.Fprintln(p.stdout, line(st))
			return lockagent.ExitOK
		case err == nil && st.GaveUp():
			_, _ = fmt.Fprintf(p.stderr, "holdfast-agent gate: %s\n", line(st))
			return lockagent.ExitBusy
		default:
			complaint = p.complain(complaint, st, err)
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
		}
	}
	return lockagent.ExitBusy
}

// complain says what keeps the gate closed, but for others who hold the lock, when
// that is something else than before.
func (p program) complain(before string, st lockagent.State, err error) string {
	now, text := "", ""
	switch {
	case err != nil:
		now = err.Error()
		text = now
	case st.Error != nil: // of one kind there are many texts
		now, text = string(st.Error.Code), line(st)
	}
	if now != before && now != "" {
		_, _ = fmt.Fprintf(p.stderr, "holdfast-agent gate: %s\n", text)
	}
	return now
}

// askUntil does not wait for the answer when ctx ends: the process ends with it.
func askUntil(ctx context.Context, once func() (lockagent.State, error)) (lockagent.State, error) {
	var st lockagent.State
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		st, err = once()
	}()
	select {
	case <-done:
		return st, err
	case <-ctx.Done():
		return lockagent.State{}, ctx.Err()
	}
}
