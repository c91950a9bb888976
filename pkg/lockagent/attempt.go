package lockagent

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// attemptRequest is one call of Attempt.
type attemptRequest struct {
	gate string
	done chan struct{} // closed by the loop
}

// Attempt tells the agent which gate waits for the lock, by an id of that
// process' own, and returns once the loop knows. An attempt is one wait that may
// end without the lock: with on-busy fail, or with a wait-timeout. The agent
// begins the first by itself, and goes on with it whichever gate asks. Only when
// it has ended without the lock, and a gate knows, another gate begins a new one:
// that is the kubelet starting the container again. The outcome is in the
// [Status]: held, or [State.GaveUp].
func (a *Agent) Attempt(ctx context.Context, gate string) error {
	request := attemptRequest{gate: gate, done: make(chan struct{})}
	select {
	case a.attempts <- request:
	case <-a.done:
		return nil // what it was at the end is what there is to know
	case <-ctx.Done():
		return fmt.Errorf("attempt for %q: %w", a.cfg.Resource, ctx.Err())
	}
	select {
	case <-request.done:
	case <-a.done: // the clock has ended the agent before it came to the request
	}
	return nil
}

func (l *loop) attemptAsked(request attemptRequest) {
	defer close(request.done)
	before := l.rec.Gate
	l.rec.Gate = request.gate
	switch {
	case !l.resting() || before == request.gate:
	case before != "":
		l.log.Info("another attempt")
		l.show(func(s *State, _ *lease) { s.Error = nil })
		l.queueAnew()
	default: // the agent was faster than its gate, which must hear of this attempt
		if err := l.save(); err != nil {
			l.log.Warn("that the gate knows is not on record", "error", err)
		}
	}
}

// resting tells whether an attempt has ended without the lock.
func (l *loop) resting() bool { return l.rec.GaveUp != "" && l.next == rest }

// failsFast tells whether a lock that is not free ends the attempt. Once the app
// has been started no gate is left that could fail, so the agent waits.
func (l *loop) failsFast() bool { return l.cfg.OnBusy == agentenv.BusyFail && !l.rec.Opened }

// mayGiveUp tells whether the wait may end without the lock.
func (l *loop) mayGiveUp() bool {
	return l.failsFast() || l.cfg.WaitTimeout > 0 && !l.rec.Opened
}

// beginWait notes since when the agent has been waiting for the next hold, which
// goes on from an earlier process, and from an earlier owner that had none, by a
// clock that still counts.
func (l *loop) beginWait() {
	now := l.clock.Boot()
	if l.rec.QueuedAt == 0 || l.rec.QueuedAt > now || l.rec.BootID != l.bootID {
		l.rec.QueuedAt = now
	}
	l.rec.BootID = l.bootID
}

// waitEnd is the boot time at which an attempt without the lock ends; false if it
// waits for ever.
func (l *loop) waitEnd() (end time.Duration, bounded bool) {
	switch l.next {
	case listen, acquire, confirm, discard:
		return l.rec.QueuedAt + l.cfg.WaitTimeout, l.cfg.WaitTimeout > 0 && !l.rec.Opened
	}
	return 0, false
}

// outOfTime tells whether the attempt ends now. An answer that may be a grant is
// waited for.
func (l *loop) outOfTime(now time.Duration) bool {
	end, bounded := l.waitEnd()
	return bounded && now >= end && (l.call == nil || l.call.task == listen)
}
