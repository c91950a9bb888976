package lockagent

import (
	"context"
	"errors"
	"time"
)

// loop owns every decision. It never waits for the store: each request runs on
// a goroutine of its own (request.go) and posts its answer. At most one is under
// way; what the loop no longer wants to hear is dropped by its number.
//
// What a request can end with, and what follows:
//
//	listen    open              → acquire; while holding, with handoff: renew
//	          error             → listen again; while holding: after the next renewal
//	acquire   granted in time   → hold: renew every TTL/3
//	          granted too late  → acquire again; the answer came after deadline - margin
//	          queued            → acquire again at the heartbeat, TTL/3; the first in line when a hold can expire
//	                              with on-busy fail: quit
//	          error             → acquire again with the same owner: it may have been granted
//	          not replicated    → discard
//	confirm   held              → hold, as above
//	          gone, taken       → acquire
//	          error             → acquire: grants again what may have been confirmed
//	          not replicated    → discard
//	renew     held              → renew again after TTL/3; asked to yield: exit 86
//	          gone, taken       → lost
//	          error             → degraded: renew again, soon
//	adopt     held              → hold, of an earlier process, beside no app; asked to yield: transfer
//	          gone, taken       → queue anew
//	          error             → adopt again
//	transfer  passed            → queue anew, after a pause
//	          held              → adopt: the heir has gone
//	          gone, taken       → queue anew
//	          error             → transfer again
//	discard   done              → queue anew
//	          error             → queue anew; if the wait may end, discard again
//	quit      done              → nothing more, until another gate asks
//	          error             → quit again
//	release   done              → nothing more
//	          error             → release again until the hold has ended
//
// and what the clock can end, whatever is under way:
//
//	holding   deadline - margin → lost
//	adopt     deadline          → discard
//	transfer  deadline          → discard
//	release   deadline          → nothing more; the hold has ended by itself
//	waiting   wait-timeout      → quit, once what is under way has been answered
//	quit      a TTL, and some   → nothing more; all that was asked for has ended by itself
//
// A time-out is an error. Pauses between attempts are in backoff.go.
//
// Go's timers stand still while a machine is suspended, so no decision hangs on
// one: the loop wakes at least every tick and compares with CLOCK_BOOTTIME.
type loop struct {
	*Agent
	running context.Context // ends with Run
	bootID  string
	epoch   int64

	rec   record
	saved bool // the state folder has rec's owner

	next     task          // what is asked for next, or is being asked for
	due      time.Duration // boot time
	failures int           // of next, in a row
	call     *pendingCall  // under way, or nil
	seq      uint64        // number of the latest call
	results  chan result

	wakes    <-chan Wake // while waiting
	unlisten context.CancelFunc
	offered  bool // an offer came while a call was under way
	again    bool // so did a reason to acquire

	queuedAt   time.Duration // boot time
	unanswered time.Duration // boot time at which an acquire or confirm was given up last; 0: none of this owner's
	leftBy     time.Duration // boot time from when on nothing can be left of what was asked for; 0: nothing was
	lastSent   time.Duration // boot time before the latest request that got or renewed the hold
	adopting   bool          // the hold is of an earlier process, and not renewed yet
	restart    bool          // once it is, restart the pod in place
	shortTo    time.Duration // what a hold is cut to after TERM

	heir       *Heir // who asked for the hold at the latest renewal; nil: nobody
	live       int64 // the ReplicaSet's revision as last read; 0: not known
	liveFailed bool  // reading it has failed, and that was told

	asked []releaseRequest // the app waits for an answer

	lastPublishError string
	code             *int // set: end with this
}

func newLoop(a *Agent, running context.Context) *loop {
	return &loop{Agent: a, running: running, bootID: a.clock.BootID(), results: make(chan result)}
}

// run decides until there is an exit code.
func (l *loop) run(term context.Context) int {
	l.pulse.beat(l.clock.Boot())
	l.start()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for l.code == nil {
		timer.Reset(l.pause())
		var event func()
		select {
		case r := <-l.results:
			event = func() { l.hear(r) }
		case w, open := <-l.wakes:
			event = func() { l.woken(w, open) }
		case request := <-l.releases:
			event = func() { l.releaseAsked(request) }
		case request := <-l.attempts:
			event = func() { l.attemptAsked(request) }
		case <-term.Done():
			event = l.end
		case <-timer.C:
			event = func() {}
		}
		l.round(event)
	}
	return *l.code
}

// round looks at the clock before anything else: an event that was late must
// not be taken for one in time.
func (l *loop) round(event func()) {
	now := l.clock.Boot()
	l.pulse.beat(now)
	l.expire(now)
	if l.code == nil {
		event()
	}
	if l.code == nil {
		l.proceed()
	}
}

// expire ends what has run out of time.
func (l *loop) expire(now time.Duration) {
	_, keeping := l.status.keeping()
	switch {
	case keeping && now >= l.holdEnd():
		l.lose(lossExpired)
	case l.next == adopt && now >= l.rec.Deadline:
		l.dropCall()
		l.planDiscard()
	case l.next == transfer && now >= l.rec.Deadline:
		l.log.Warn("the store could not be asked before the hold ended, so it is not handed over", "to", l.rec.Yield.Pod)
		l.dropCall()
		l.planDiscard()
	case l.next == release && now >= l.rec.Deadline:
		l.releaseOver(errors.New("the store did not answer until the hold ended by itself"))
	case l.next == quit && now >= l.leftBy:
		l.gaveUp(errors.New("the store did not answer until there was nothing left to leave"))
	}
}

// proceed gives up a call that is overdue and makes the one that is due.
func (l *loop) proceed() {
	now := l.clock.Boot()
	if l.call != nil && now >= l.call.giveUp {
		l.hear(l.call.timedOut(l.cfg.Resource))
	}
	if l.code == nil && l.outOfTime(now) {
		l.quit(CodeWaitTimeout)
	}
	if l.code == nil && l.call == nil && l.next != rest && now >= l.due {
		l.send(now)
	}
}

// plan makes t the next request, at a boot time.
func (l *loop) plan(t task, due time.Duration) {
	if t != l.next {
		l.failures = 0
	}
	l.next, l.due = t, due
}

// retry plans t after one more failure.
func (l *loop) retry(t task, b backoff) {
	failures := l.failures + 1
	l.plan(t, l.clock.Boot()+b.pause(failures, l.random()))
	l.failures = failures
}

// finish ends the loop with code once this round is over.
func (l *loop) finish(code int) { l.code = &code }

// holdEnd is the boot time from which on the hold counts as lost.
func (l *loop) holdEnd() time.Duration { return l.rec.Deadline - l.cfg.Margin }

// pause is how long the loop may sleep: until something is due, and no longer
// than a tick.
func (l *loop) pause() time.Duration {
	now := l.clock.Boot()
	wake := now + min(500*time.Millisecond, l.cfg.TTL/30)
	if l.call != nil {
		wake = min(wake, l.call.giveUp)
	} else if l.next != rest {
		wake = min(wake, l.due)
	}
	if _, keeping := l.status.keeping(); keeping {
		wake = min(wake, l.holdEnd())
	}
	if l.next == adopt || l.next == transfer {
		wake = min(wake, l.rec.Deadline)
	}
	if end, bounded := l.waitEnd(); bounded && end > now {
		wake = min(wake, end)
	}
	return max(0, wake-now)
}

// interval is the time between two renewals or heartbeats: TTL/3 ± 10 %, so
// that pods which started together do not stay together.
func (l *loop) interval() time.Duration {
	third := float64(l.cfg.TTL) / 3
	return time.Duration(third * (0.9 + 0.2*l.random()))
}
