package lockagent

import (
	"errors"
	"time"
)

const (
	// adoptBesideApp is the least TTL with which an agent that took over simply
	// goes on: the kubelet's pause before its next restart may reach 10 s, and
	// with a shorter TTL the hold would not live through it.
	adoptBesideApp = 30 * time.Second
	// adoptAgain is how long a second takeover counts as a repeated one, for
	// which the kubelet's pause grows.
	adoptAgain = 10 * time.Minute
)

// start finds out what an earlier process of this agent has left, before any
// request. The record says what it had; the epoch says whether the app that ran
// with it may still run: it may if the epoch is the same, in a pod.
//
//	record              the app may run             no app runs
//	none                queue anew                  queue anew
//	owner, no token     queue on, same owner        queue on, same owner
//	hold, in time       holding at once; renew      adopt: renew before holding
//	hold, in its margin lost: see lose.go           adopt: renew before holding
//	hold, out of time   lost: see lose.go           discard, queue anew
//	lost                exit 87 again               discard, queue anew
//	hold, ending        lost: see lose.go           discard, queue anew
//	hold, yielding      exit 86 again               hand over: see yield.go
//	owner, ending       discard, queue anew         discard, queue anew
//	attempt has failed  rest, or quit first         discard if need be, queue anew
//	cannot be read      as lost; exit 87            queue anew
//
// In the left column with on-lost notify nothing ends: what is lost queues anew.
// After the renewal of a hold beside a running app, the pod is restarted in
// place, with the hold kept, if the next takeover could come too late.
func (l *loop) start() {
	if err := clearTerminating(l.cfg.StateDir); err != nil {
		l.log.Warn("an old mark of a pod's end stays", "error", err)
	}
	rec, err := loadRecord(l.cfg.StateDir)
	l.rec = rec
	l.status.update(func(s *State, _ *lease) { s.LastLoss = rec.LastLoss })
	if loss := rec.LastLoss; loss != nil { // the first line of a log: nobody can read the last run's
		l.log.Warn("the last hold was lost", "at", time.Time(loss.At), "reason", loss.Reason, "token", loss.Token)
	}
	beside := l.besideApp()
	if !beside || rec.BootID != l.bootID { // after a restart in place the kubelet's pause is gone
		l.rec.AdoptedAt = 0
	}
	if !beside {
		l.rec.Opened = false
	}
	l.unanswered = l.clock.Boot() // the last process' requests are
	l.leftBy = l.nothingLeft(l.unanswered)
	l.log.Info("holdfast-agent starts", "version", l.version, "kind", l.cfg.Kind, "resource", l.cfg.Resource,
		"ttl", l.cfg.TTL.String(), "margin", l.cfg.Margin.String(), "epoch", l.epoch, "app_may_run", beside)
	switch {
	case errors.Is(err, errCorrupt):
		l.startUnknown(err)
	case err != nil: // no record can be written either: send says so until it can
		l.stateDirProblem(err)
		l.queueAnew()
	case beside && rec.GaveUp != "":
		l.startGivenUp()
	case rec.Owner == "":
		l.queueAnew()
	case rec.Yield != nil && !rec.Lost && !rec.Ending:
		l.startYielded(beside)
	case rec.Token == 0 && !rec.Lost && !rec.Ending:
		l.queue()
	case beside && (rec.Token != 0 || rec.Lost):
		l.startBesideApp()
	default:
		l.startAlone()
	}
}

// besideApp reads the epoch. One that cannot be read counts as unchanged: that
// is the case in which more has to be done.
func (l *loop) besideApp() bool {
	epoch, err := readEpoch(l.cfg.StateDir)
	if err != nil {
		l.log.Error("the epoch cannot be read, so the app may be running", "error", err)
		epoch = l.rec.Epoch
	}
	l.epoch = epoch
	return l.cfg.InPod() && epoch == l.rec.Epoch
}

// inTime tells whether the record's hold is one still, with more than that left.
// No hold has more left than a TTL: a record that says so is damaged, and would be
// believed for years.
func (l *loop) inTime(more time.Duration) bool {
	left := l.rec.Deadline - l.clock.Boot()
	return !l.rec.Lost && l.rec.BootID == l.bootID && left > more && left <= l.cfg.TTL
}

func (l *loop) startAlone() {
	now := l.clock.Boot()
	l.queuedAt = now
	l.publish(l.status.State())
	if l.inTime(0) && !l.rec.Ending { // there is no app to be stopped in time
		l.plan(adopt, now)
		return
	}
	l.planDiscard()
}

// planDiscard releases the record's hold, with which the next wait begins.
func (l *loop) planDiscard() {
	l.beginWait()
	l.plan(discard, l.clock.Boot())
}

func (l *loop) startBesideApp() {
	switch {
	case l.rec.Lost && l.cfg.StopsApp():
		l.show(func(s *State, _ *lease) { s.State = Lost })
		l.log.Error("the app of a lost hold may still run, ending again")
		l.finish(ExitLost)
	case l.rec.Lost:
		l.queueAnew()
	case !l.inTime(l.cfg.Margin):
		l.lose(lossExpired)
	case l.rec.Ending:
		l.lose(lossGone)
	default:
		l.takeOver()
	}
}

// takeOver goes on with a hold beside a running app. The hold has not run out,
// so nothing changes for the app until the first renewal is answered.
func (l *loop) takeOver() {
	now := l.clock.Boot()
	repeated := l.rec.AdoptedAt > 0 && now-l.rec.AdoptedAt < adoptAgain
	l.restart = l.cfg.StopsApp() && (repeated || l.cfg.TTL < adoptBesideApp)
	l.adopting = true
	l.rec.AdoptedAt = now
	if err := l.save(); err != nil {
		l.log.Warn("the takeover is not on record", "error", err)
	}
	l.begin()
	l.plan(renew, now)
}

// tookOver is after the first renewal of a hold that was taken over.
func (l *loop) tookOver() {
	l.adopting = false
	l.metrics.adoptions.Inc()
	l.log.Info("took the hold over", "token", l.rec.Token)
	if !l.restart {
		return
	}
	l.log.Warn("restarting the pod in place with its hold, for a next takeover could come too late")
	l.conceal(Waiting)
	l.finish(ExitLost)
}

// adopted takes in the answer to a renewal while no app runs.
func (l *loop) adopted(r result) {
	switch {
	case r.err != nil:
		l.retry(adopt, renewBackoff)
	case r.renewal.Outcome != Held:
		l.log.Info("the hold of the last run has ended", "token", l.rec.Token)
		l.queueAnew()
	case r.renewal.Heir != nil:
		l.rec.Token, l.rec.Deadline, l.rec.Yield = r.renewal.Token, r.sent+l.cfg.TTL, r.renewal.Heir
		l.handOver()
	case l.hold(r, r.renewal.Token):
		l.metrics.adoptions.Inc()
	}
}

// discarded goes on to wait, though the old hold may still be there: it ends by
// itself. Where a wait may end, it has to be gone first: it would be taken for
// another's, or left behind.
func (l *loop) discarded(r result) {
	if r.err != nil && l.mayGiveUp() {
		l.retry(discard, waitBackoff)
		return
	}
	l.queueAnew()
}

// startUnknown is for a record that cannot be read. If the app may run, it may
// run without a hold. The loss is recorded with this epoch, so that the next
// start, after the pod has restarted in place, finds it changed.
func (l *loop) startUnknown(err error) {
	l.log.Error("the record of the last run cannot be read", "error", err)
	if !l.cfg.InPod() || !l.cfg.StopsApp() {
		l.queueAnew()
		return
	}
	l.rec = record{Epoch: l.epoch, BootID: l.bootID, Owner: l.newOwner()}
	l.lose(lossUnknown)
}

// conceal shows p without a hold: whoever ends this process can no longer tell
// the app when its hold runs out.
func (l *loop) conceal(p Phase) {
	l.show(func(s *State, le *lease) { s.State, *le = p, lease{} })
}
