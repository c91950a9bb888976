package lockagent

import "time"

// yieldRest is how long an agent that has handed its hold over stays out of the
// queue: the heir has so long to answer.
const yieldRest = 3 * time.Second

// yields tells whether a newer revision may have this agent's hold. The app is
// stopped for it as it is on a loss.
func (l *loop) yields() bool { return l.cfg.HandsOver() && l.cfg.StopsApp() }

// yieldHeard renews at once: the answer says whether the one who asks is still
// there. A renewal that is under way may have been answered before the question.
func (l *loop) yieldHeard(w Wake) {
	switch {
	case w.Kind != WakeYield:
	case l.call != nil:
		l.again = true
	default:
		l.plan(renew, l.clock.Boot())
	}
}

// askedToYield stops the app for the heir, unless the pod is ending anyhow. What
// is on record makes the next process hand the hold over, once no app can run
// any more. An agent that can stop the app by itself could do so at once.
func (l *loop) askedToYield() {
	heir := l.heir
	if l.terminating() {
		l.log.Info("asked to yield, which the end of the pod will do", "by", heir.Pod, "its_revision", heir.Revision)
		return
	}
	l.rec.Yield = heir
	if err := l.save(); err != nil {
		l.rec.Yield = nil
		l.stateDirProblem(err)
		return
	}
	l.conceal(Yielding)
	l.log.Info("yielding to a newer revision: the app is stopped", "to", heir.Pod,
		"its_revision", heir.Revision, "revision", l.revision(), "token", l.rec.Token)
	l.finish(ExitYielded)
}

// startYielded goes on with a hold that an earlier process has stopped the app
// for. That the app runs, perhaps, with the same epoch, is not changed by the
// hold being good: the app has been told that nothing is held.
func (l *loop) startYielded(beside bool) {
	if beside {
		l.conceal(Yielding)
		l.log.Warn("the app of a hold that is being yielded may still run, ending again")
		l.finish(ExitYielded)
		return
	}
	l.handOver()
}

// handOver passes the hold of the record on while no app runs. No margin is
// needed, so there is time until the hold's very end. The record keeps the epoch
// of the app that has ended: a next process may do the same.
func (l *loop) handOver() {
	now := l.clock.Boot()
	l.queuedAt = now
	l.conceal(Yielding)
	if l.inTime(0) {
		l.plan(transfer, now)
		return
	}
	l.planDiscard()
}

func (l *loop) transferred(r result) {
	switch {
	case r.err != nil:
		l.retry(transfer, renewBackoff)
	case r.outcome == Passed:
		l.passedOn(r.heir)
		l.queueAnew()
		l.plan(listen, l.clock.Boot()+yieldRest)
	case r.outcome == Held:
		l.keepHold(r.heir)
	default:
		l.log.Warn("the hold ended before it was handed over", "to", r.heir.Pod)
		l.queueAnew()
	}
}

func (l *loop) passedOn(heir *Heir) {
	l.metrics.yields.Inc()
	l.log.Info("handed the lock over", "to", heir.Pod, "its_revision", heir.Revision, "token", l.rec.Token)
}

// keepHold goes back to holding: the one who asked is not there any more.
func (l *loop) keepHold(heir *Heir) {
	l.metrics.yieldsInVain.Inc()
	l.log.Info("the one who asked for the lock is gone, so it is kept", "asked_by", heir.Pod,
		"its_revision", heir.Revision, "token", l.rec.Token)
	l.rec.Yield = nil
	l.conceal(Waiting)
	l.plan(adopt, l.clock.Boot())
}

// passToHeir is TERM after the app has ended in a pod that was asked to yield
// meanwhile. That either request may arrive late is put on record before both.
func (l *loop) passToHeir() bool {
	if l.heir == nil {
		return false
	}
	l.dropCall()
	l.rec.Yield, l.rec.Ending = l.heir, true
	if err := l.save(); err != nil {
		l.log.Warn("the coming hand-over is not on record", "error", err)
	}
	return l.transferNow()
}

// transferNow hands the hold over while TERM waits, and tells whether that worked.
func (l *loop) transferNow() bool {
	if l.call == nil {
		l.launch(transfer, l.clock.Boot(), patience)
	}
	r := l.await(l.call, patience)
	if r.err != nil || r.outcome != Passed {
		return false
	}
	l.passedOn(r.heir)
	l.rec = l.rec.wiped()
	if err := l.save(); err != nil {
		l.log.Warn("the hand-over is not on record", "error", err)
	}
	return true
}

// endYielding is TERM while no app runs and an heir waits. The hold is handed
// over, or given back if that does not work at once.
func (l *loop) endYielding() int {
	if l.next != transfer {
		return l.leave()
	}
	if l.transferNow() || l.giveBack() {
		return ExitOK
	}
	return ExitLost
}
