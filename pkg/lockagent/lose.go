package lockagent

// Why a hold was lost: the reason in state.json's lastLoss.
const (
	lossExpired = "expired" // not renewed by deadline - margin
	lossGone    = "gone"    // the store has no such hold any more
	lossTaken   = "taken"   // another has the lock
	lossUnknown = "unknown" // the record of it cannot be read
)

// lose ends a hold for good. First the app can no longer believe in it, then it
// is put on record, for nothing else of this process will be left to see; only
// then it acts on it. Nothing is released: until the deadline the app has time
// to stop, and then the store frees the lock by itself.
func (l *loop) lose(reason string) {
	l.dropCall()
	l.stopListening()
	loss := &Loss{At: Timestamp(l.clock.Now()), Reason: reason, Token: l.rec.Token}
	l.show(func(s *State, le *lease) {
		s.State, s.LastLoss, *le = Lost, loss, lease{}
	})
	l.rec.LastLoss = loss
	l.metrics.losses.Inc()
	l.log.Error("lost the lock", "reason", reason, "token", loss.Token)
	l.plan(rest, 0)
	ending := l.terminating()
	if !l.cfg.StopsApp() && !ending {
		l.queueAnew()
		return
	}
	l.rec.Lost = true
	if err := l.save(); err != nil {
		l.log.Error("the loss is not on record", "error", err)
	}
	if ending { // the app is being stopped already, and an exit would stop nothing
		l.log.Warn("the pod is ending, waiting for its end")
		return
	}
	l.finish(ExitLost)
}
