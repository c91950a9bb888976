package lockagent

import "fmt"

// releaseRequest is one call of Release.
type releaseRequest struct{ reply chan error }

// releaseAsked gives the lock back because the app wants to. What the app is
// told, and the record, change before the store is asked: from then on it may
// have been done.
func (l *loop) releaseAsked(request releaseRequest) {
	if !l.status.State().Held {
		request.reply <- ErrNotHolding
		return
	}
	l.dropCall()
	l.stopListening()
	l.asked = append(l.asked, request)
	l.show(func(s *State, le *lease) { s.State, s.Error, *le = Released, nil, lease{} })
	if err := l.rec.wiped().save(l.cfg.StateDir); err != nil {
		l.log.Warn("the release is not on record", "error", err)
	}
	l.plan(release, l.clock.Boot())
}

func (l *loop) released(r result) {
	if r.err != nil {
		l.retry(release, renewBackoff)
		return
	}
	l.releaseOver(nil)
}

// releaseOver tells the app how it ended.
func (l *loop) releaseOver(err error) {
	l.dropCall()
	l.plan(rest, 0)
	l.show(func(s *State, _ *lease) { s.Error = nil })
	l.log.Info("released", "token", l.rec.Token, "confirmed", err == nil)
	l.rec = l.rec.wiped()
	if err != nil {
		err = fmt.Errorf("release %q: %w", l.cfg.Resource, err)
	}
	for _, request := range l.asked {
		request.reply <- err
	}
	l.asked = nil
}
