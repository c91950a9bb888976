package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// askAgain is the pause after an agent that did not answer: it may be starting.
const askAgain = 100 * time.Millisecond

// gate ends once the running agent holds the lock, or with an error on TERM. It is
// the command of the init container before the app, and what the app waits for.
func gate(p program) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	socket := p.socket()
	return p.awaitHeld(ctx, func() (lockagent.State, error) { return askOnce(socket, time.Minute) })
}

// awaitHeld asks again and again until the lock is held. An agent that does not
// answer is no reason to end: in a pod that is never restarted that would be the
// pod's failure.
func (p program) awaitHeld(ctx context.Context, once func() (lockagent.State, error)) int {
	complaint := ""
	for ctx.Err() == nil {
		st, err := askUntil(ctx, once)
		switch {
		case err == nil && st.Held:
			_, _ = fmt.Fprintln(p.stdout, line(st))
			return lockagent.ExitOK
		case err != nil && ctx.Err() == nil && err.Error() != complaint:
			complaint = err.Error()
			_, _ = fmt.Fprintf(p.stderr, "holdfast-agent gate: %s\n", complaint)
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
		}
	}
	return lockagent.ExitBusy
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
