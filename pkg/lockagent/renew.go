package lockagent

// renewed takes in the answer to a renewal of a hold that has not run out.
func (l *loop) renewed(r result) {
	switch {
	case r.err != nil:
		l.metrics.renewFailures.Inc()
		l.show(func(s *State, _ *lease) { s.State = Degraded })
		l.retry(renew, renewBackoff)
	case r.renewal.Outcome == Held:
		l.extend(r)
		l.heir = r.renewal.Heir
		if l.code == nil && l.heir != nil {
			l.askedToYield()
		}
	case r.renewal.Outcome == Taken:
		l.lose(lossTaken)
	default:
		l.lose(lossGone)
	}
}

// extend moves the deadline. It counts from before the request, not from the
// answer: the store's own count began somewhere between.
func (l *loop) extend(r result) {
	l.metrics.renewals.Inc()
	if l.lastSent > 0 && r.sent-l.lastSent > l.cfg.TTL/2 {
		l.metrics.lateRenewals.Inc()
	}
	l.lastSent = r.sent
	l.rec.Token, l.rec.Deadline = r.renewal.Token, r.sent+l.cfg.TTL
	if l.failures > 0 {
		l.log.Info("renewed again", "failures", l.failures)
	}
	l.failures = 0
	l.planRenewal()
	saved := l.save()
	l.show(func(s *State, le *lease) {
		s.State = Holding
		le.token, le.deadline = l.rec.Token, l.rec.Deadline
		if saved == nil {
			s.Error = nil
		}
	})
	if saved != nil { // the record's deadline is too early: safe, and worth telling
		l.stateDirProblem(saved)
	}
	if l.adopting {
		l.tookOver()
	}
}

// planRenewal is after a request that got or renewed the hold. Who may be asked to
// yield listens for it first, if it does not yet; what was said while the request
// was under way is asked for at once.
func (l *loop) planRenewal() {
	now := l.clock.Boot()
	switch {
	case l.again:
		l.plan(renew, now)
	case l.yields() && l.wakes == nil:
		l.plan(listen, now)
	default:
		l.plan(renew, l.lastSent+l.interval())
	}
}
