package lockagent

import "time"

// headSlack is added to the time at which a hold can expire, so that the first
// in line asks just after it rather than just before.
const headSlack = time.Millisecond

// queueAnew begins a new acquisition: with a new owner, so that a late request
// of an earlier one can do it no harm.
func (l *loop) queueAnew() {
	l.rec = l.rec.wiped()
	l.rec.Owner = l.newOwner()
	l.leftBy, l.unanswered = 0, 0
	l.queue()
}

// queue waits for the lock in the name of the record's owner. Who would not wait
// for a wake-up does not listen for one.
func (l *loop) queue() {
	l.dropCall()
	l.stopListening()
	l.beginWait()
	l.queuedAt = l.rec.QueuedAt
	l.rec.Epoch = l.epoch
	l.saved = false
	l.failures = 0
	l.plan(listen, l.clock.Boot())
	if l.failsFast() {
		l.plan(acquire, l.clock.Boot())
	}
	l.show(func(s *State, le *lease) { s.State, *le = Waiting, lease{} })
}

// listening goes on to acquire: what is free now, nobody will be woken for.
func (l *loop) listening(r result) {
	if r.err == nil {
		l.wakes, l.unlisten = r.wakes, r.cancel
	}
	_, keeping := l.status.keeping()
	switch {
	case keeping && r.err == nil: // what was asked before, nobody says again
		l.plan(renew, l.clock.Boot())
	case keeping:
		l.plan(renew, l.lastSent+l.interval())
	case r.err != nil:
		l.retry(listen, waitBackoff)
	default:
		l.plan(acquire, l.clock.Boot())
	}
}

func (l *loop) acquired(r result) {
	switch {
	case codeOf(r.err) == CodeNotReplicated:
		l.disown()
	case r.err != nil:
		l.acquireAgain()
	case r.answer.Granted:
		if l.hold(r, r.answer.Token) {
			l.metrics.acquisitions.Inc()
		}
	default:
		l.queued(r)
	}
}

// acquireAgain is for an outcome that is not known. The lock may be ours, so the
// first retry is at once; then the store has a problem and is given time.
func (l *loop) acquireAgain() {
	l.unanswered = l.clock.Boot()
	if l.next != acquire || l.failures == 0 {
		l.plan(acquire, l.clock.Boot())
		l.failures = 1
		return
	}
	l.retry(acquire, waitBackoff)
}

// disown is for a hold of which the store's replicas do not know: a fail-over
// would give it to another. Its owner asks for nothing more, since the release may
// be late; how long the store waited for replicas spaces the attempts.
func (l *loop) disown() {
	l.stopListening()
	l.rec.Ending = true
	if err := l.save(); err != nil {
		l.log.Warn("the coming release is not on record", "error", err)
	}
	l.planDiscard()
}

// queued waits for a wake-up, and at most until the next heartbeat.
func (l *loop) queued(r result) {
	now := l.clock.Boot()
	l.failures = 0
	l.rec.Token, l.rec.AcquiredAt, l.rec.Deadline = 0, time.Time{}, 0 // of a grant that came too late
	l.showPlace(r.answer)
	if pod := r.answer.Asked; pod != "" {
		l.log.Info("asked an older revision to yield", "holder", pod, "revision", l.revision())
	}
	switch {
	case l.failsFast():
		l.busy(r.answer)
	case l.offered:
		l.plan(confirm, now)
	case l.again:
		l.plan(acquire, now)
	case l.wakes == nil:
		l.retry(listen, waitBackoff)
	default:
		l.plan(acquire, r.sent+l.interval())
		l.lookAfter(r.answer.RetryAfter)
	}
}

// lookAfter asks again when a hold can have expired, for nobody announces that.
func (l *loop) lookAfter(after time.Duration) {
	if after > 0 {
		l.due = min(l.due, l.clock.Boot()+after+headSlack)
	}
}

// woken acts on a wake-up, or notes it for when the call under way is answered:
// that may have been asked before whatever the wake-up tells of.
func (l *loop) woken(w Wake, open bool) {
	now := l.clock.Boot()
	_, keeping := l.status.keeping()
	switch {
	case !open:
		l.stopListening()
		if l.call == nil && !keeping {
			l.retry(listen, waitBackoff)
		}
	case keeping:
		l.yieldHeard(w)
	case l.call != nil:
		l.offered = l.offered || w.Kind == WakeOffer
		l.again = l.again || w.Kind != WakeOffer
	case w.Kind == WakeOffer:
		l.plan(confirm, now)
	case w.Kind == WakeNext:
		l.show(func(s *State, _ *lease) { s.Position = 1 })
		l.lookAfter(w.After)
	default:
		l.plan(acquire, now)
	}
}

func (l *loop) confirmed(r result) {
	switch {
	case codeOf(r.err) == CodeNotReplicated:
		l.disown()
	case r.err != nil:
		l.acquireAgain()
	case r.renewal.Outcome != Held:
		l.plan(acquire, l.clock.Boot())
	case l.hold(r, r.renewal.Token):
		l.metrics.acquisitions.Inc()
		l.metrics.offersConfirmed.Inc()
	}
}

// hold begins to hold what r granted. It does not when the answer came so late
// that the hold would be lost already, or when it cannot be put on record, for
// the app must not start on a hold that no later process would know of. Then it
// acquires again, which grants the same hold with a full TTL; but not before the
// record can be written, for meanwhile the hold should end and be another's.
func (l *loop) hold(r result, token int64) bool {
	now := l.clock.Boot()
	l.rec.Epoch, l.rec.BootID = l.epoch, l.bootID // of an adopted hold, they were another run's
	l.rec.Token, l.rec.Deadline = token, r.sent+l.cfg.TTL
	if l.rec.AcquiredAt.IsZero() {
		l.rec.AcquiredAt = l.clock.Now()
	}
	if now >= l.holdEnd() {
		l.log.Warn("granted too late, asking again", "token", token, "after", (now - r.sent).String())
		l.plan(acquire, now)
		return false
	}
	waiting := l.rec
	l.rec.Opened, l.rec.QueuedAt = true, 0
	if err := l.save(); err != nil {
		l.rec, l.saved = waiting, false
		l.stateDirProblem(err)
		l.retry(acquire, waitBackoff)
		return false
	}
	if !l.yields() { // a subscription is a connection
		l.stopListening()
	}
	l.begin()
	l.lastSent, l.again = r.sent, false
	l.planRenewal()
	if r.task != adopt {
		l.metrics.waited.Update((now - l.queuedAt).Seconds())
	}
	l.log.Info("holding", "token", token, "waited", (now - l.queuedAt).String())
	return true
}

// begin shows the record's hold.
func (l *loop) begin() {
	l.show(func(s *State, le *lease) {
		s.State, s.Error, s.Position, s.Waiters = Holding, nil, 0, 0
		*le = lease{token: l.rec.Token, acquiredAt: l.rec.AcquiredAt, deadline: l.rec.Deadline}
	})
}

func (l *loop) stopListening() {
	if l.unlisten != nil {
		l.unlisten()
	}
	l.wakes, l.unlisten = nil, nil
}
