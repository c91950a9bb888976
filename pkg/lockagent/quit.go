package lockagent

import (
	"fmt"
	"time"
)

const (
	// offerLife is how long the store keeps an offer for whoever does not answer.
	offerLife = 3 * time.Second
	// moment is so soon that a lock which can be free then is not called busy: it
	// is also what the store asks for when it has not forgotten all the dead yet.
	moment = 10 * time.Millisecond
	// afterthought is how long after an answer of the store a request that was given
	// up before may still be done: a server that has stood still does all that has
	// reached it meanwhile, in an order of its own.
	afterthought = time.Second
)

// busy ends the attempt because the store has said that the lock is not free.
func (l *loop) busy(a Answer) {
	if a.RetryAfter > 0 && a.RetryAfter <= moment {
		l.plan(acquire, l.clock.Boot()+a.RetryAfter)
		return
	}
	l.quit(CodeBusy)
}

// quit ends the attempt. It leaves the queue, and gives back what may have been
// granted in the meantime; only when that is certain the gate is told, so that
// no hold and no place in the queue remain of an attempt that has failed.
func (l *loop) quit(why Code) {
	l.dropCall()
	l.stopListening()
	owner := l.rec.Owner
	l.rec = l.rec.wiped() // there may have been a grant that came too late
	l.rec.Owner, l.rec.Epoch, l.rec.BootID = owner, l.epoch, l.bootID
	l.rec.GaveUp, l.rec.Ending = why, true
	if l.leftBy == 0 { // nothing was ever asked for
		l.gaveUp(nil)
		return
	}
	if err := l.save(); err != nil {
		l.log.Warn("the end of the attempt is not on record", "error", err)
	}
	l.show(func(s *State, _ *lease) { s.Position, s.Waiters = 0, 0 })
	l.plan(quit, l.clock.Boot())
}

// hasQuit leaves once more where a request in the owner's name has lately been
// given up without an answer.
func (l *loop) hasQuit(r result) {
	now := l.clock.Boot()
	switch {
	case r.err != nil:
		l.retry(quit, renewBackoff)
	case l.unanswered > 0 && now-l.unanswered < l.cfg.TTL:
		l.unanswered = 0
		l.plan(quit, now+afterthought)
	default:
		l.gaveUp(nil)
	}
}

// nothingLeft is the boot time at which all that was asked for until then has
// been forgotten by the store: a hold, a place in the queue, and an offer that
// was made at its last moment. A tenth is for clocks of different rates.
func (l *loop) nothingLeft(asked time.Duration) time.Duration {
	return asked + l.cfg.TTL + l.cfg.TTL/10 + offerLife
}

// gaveUp tells that the attempt has ended, and rests until another begins. Outside
// a pod nobody would begin one, so there the process ends.
func (l *loop) gaveUp(unconfirmed error) {
	why, problem := l.rec.GaveUp, l.whyGaveUp()
	l.log.Warn("gave up", "code", why, "error", problem.Message, "left_queue", unconfirmed == nil)
	l.metrics.gaveUp(why)
	l.dropCall()
	l.rec = l.rec.wiped()
	l.rec.GaveUp, l.rec.Epoch, l.rec.BootID, l.rec.QueuedAt = why, l.epoch, l.bootID, 0
	if err := l.save(); err != nil {
		l.log.Warn("the end of the attempt is not on record", "error", err)
	}
	l.rested(problem)
}

func (l *loop) rested(problem Problem) {
	l.plan(rest, 0)
	l.show(func(s *State, _ *lease) { s.Error, s.Position, s.Waiters = &problem, 0, 0 })
	if !l.cfg.InPod() {
		l.finish(ExitBusy)
	}
}

// whyGaveUp says what the attempt has ended with, and what was in the way last.
func (l *loop) whyGaveUp() Problem {
	p := Problem{Code: l.rec.GaveUp, Message: fmt.Sprintf("%q is not free, and on-busy is fail", l.cfg.Resource)}
	if p.Code == CodeWaitTimeout {
		p.Message = fmt.Sprintf("%q was not to be had within the wait-timeout of %s", l.cfg.Resource, l.cfg.WaitTimeout)
	}
	if last := l.status.State().Error; last != nil && !last.Code.gaveUp() {
		p.Message += "; last: " + last.Message
	}
	return p
}

// startGivenUp goes on where an earlier process has ended an attempt, or was about to.
func (l *loop) startGivenUp() {
	if l.rec.Owner != "" {
		l.publish(l.status.State())
		l.plan(quit, l.clock.Boot())
		return
	}
	l.rested(l.whyGaveUp())
}
