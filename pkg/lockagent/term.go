package lockagent

import "time"

// How the last requests share the two seconds after TERM.
const (
	patience    = 700 * time.Millisecond // for an answer that decides what has to be given back
	lastRequest = 800 * time.Millisecond // for the last request
)

// end acts on TERM. That is not the same as "the app has ended": the kubelet
// also ends an agent alone, and kills at the end of the grace period whoever is
// left. So only when all speaks for it is the lock given back at once.
//
//	waiting                     leave the queue                  0
//	holding, outside a pod      release                          0, or 87 if not confirmed
//	holding, the app has ended  release; to who has asked for it 87
//	holding, the app is killed  shorten the hold, keep record    87
//	holding, it may be killed   shorten it more, keep record     87
//	holding, in doubt           shorten it less, keep record     87
//	yielding, no app runs       hand over, or else release       0, or 87 if not confirmed
//	lost                        nothing                          87
//	released                    release, if not confirmed yet    0
func (l *loop) end() {
	now := l.clock.Boot()
	switch l.status.State().State {
	case Lost:
		l.finish(ExitLost)
	case Released:
		if l.next == release && l.giveBack() {
			l.releaseOver(nil)
		}
		l.finish(ExitOK)
	case Holding, Degraded:
		l.finish(l.endHolding(now))
	case Yielding:
		l.finish(l.endYielding())
	default:
		l.finish(l.leave())
	}
}

// leave goes out of the queue. A grant that is on its way would be of no use to
// anybody for a whole TTL, so its answer is awaited first.
func (l *loop) leave() int {
	l.stopListening()
	if l.call != nil && l.call.task != listen {
		l.await(l.call, patience)
	}
	if l.saved || l.rec.Token != 0 {
		if !l.giveBack() && l.rec.Token != 0 {
			return ExitLost
		}
	}
	return ExitOK
}

func (l *loop) endHolding(now time.Duration) int {
	switch {
	case !l.cfg.InPod():
		l.conceal(Released)
		if l.giveBack() {
			return ExitOK
		}
	default:
		l.endInPod(now)
	}
	return ExitLost
}

func (l *loop) endInPod(now time.Duration) {
	switch l.appAtTerm(now) {
	case appEnded:
		l.conceal(Released)
		if !l.passToHeir() {
			l.giveBack()
		}
	case appKilled:
		l.conceal(Waiting)
		l.cutShort(now, shortLife)
	case appMayBeKilled:
		l.conceal(Waiting)
		l.cutShort(now, briefLife)
	default:
		l.conceal(Waiting)
		// After a recent takeover the kubelet pauses before it starts an agent
		// again, and the hold must not end before that.
		if l.rec.AdoptedAt > 0 && now-l.rec.AdoptedAt < adoptAgain {
			l.log.Warn("in doubt whether the app has ended: the hold is left to end by itself", "by", l.frees())
			return
		}
		l.cutShort(now, max(shortLife, l.cfg.Margin+comeback))
	}
}

// appState is what TERM tells of the app.
type appState string

const (
	appEnded       appState = "ended"
	appKilled      appState = "killed"        // about now, at the end of a grace period
	appMayBeKilled appState = "may be killed" // about now, if the hook ran late
	appRuns        appState = "may run"       // and an agent may come back beside it
)

// appAtTerm finds out why TERM came. The app has ended if the kubelet began to
// end the pod, did not do so because of our probe, and did not have to wait until
// a grace period was over.
//
// For a hook the kubelet has several processes started, which on a busy machine
// was seen to take seconds. It may have used up a short grace period by then, and
// sends TERM without any wait, as it does when the app has ended. But it stops to
// probe when it begins to end a pod, so after a recent probe no grace period can be
// over.
func (l *loop) appAtTerm(term time.Duration) appState {
	hook, ok := l.terminatingSince()
	if !ok {
		l.log.Warn("TERM without a preStop hook: the app may run on")
		return appRuns
	}
	well := l.wellUntil(hook)
	full := atGracePeriod(term-hook, l.cfg.GracePeriod)
	late := l.nodeBusy() && !l.probedWithin(time.Second-hookSlack, term)
	l.log.Info("TERM", "after_hook", (term - hook).String(), "well", well, "at_grace_period", full, "hook_may_be_late", late)
	switch {
	case !well:
		return appRuns
	case full:
		return appKilled
	case late:
		return appMayBeKilled
	}
	return appEnded
}

// The kubelet counts a grace period from when it has seen the hook end. That is
// milliseconds after the hook looked at the clock, and on a busy node a good part
// of a second.
const (
	hookSlack = 250 * time.Millisecond
	// byForce is how long the kubelet may take to send TERM in a pod that is
	// deleted by force, or evicted from a node that runs out of memory. It grants
	// one second then, but the app two.
	byForce = 2 * time.Second
)

// atGracePeriod tells whether TERM came when a grace period was over: the pod's
// own, or one that came with the deletion, which is in whole seconds too. One
// TERM in four that means "the app has ended" is mistaken for that, which costs
// a few seconds; the other way round the next app would run beside this one.
func atGracePeriod(sinceHook, grace time.Duration) bool {
	switch {
	case sinceHook < time.Second-hookSlack: // no grace period is shorter
		return false
	case sinceHook < byForce, sinceHook >= grace-hookSlack:
		return true
	}
	return sinceHook%time.Second <= hookSlack
}

// giveBack releases, or leaves the queue, and tells whether that is certain. The
// record changes before the store is asked: when the answer is lost, the request
// may still be on its way, and no later process may hold by the owner it names.
func (l *loop) giveBack() bool {
	l.dropCall()
	l.rec.Ending = true
	if err := l.save(); err != nil {
		l.log.Warn("the coming release is not on record", "error", err)
	}
	l.launch(release, l.clock.Boot(), lastRequest)
	r := l.await(l.call, lastRequest)
	if r.err != nil {
		l.log.Warn("could not give the lock back; it frees itself", "by", l.frees(), "error", r.err)
		return false
	}
	l.log.Info("gave the lock back", "was_held", r.had)
	l.rec = l.rec.wiped()
	if err := l.save(); err != nil {
		l.log.Warn("the release is not on record", "error", err)
	}
	return true
}

// frees is the wall time at which the store forgets this owner at the latest,
// by all that is known here.
func (l *loop) frees() time.Time {
	if l.rec.Token == 0 {
		return l.clock.Now().Add(l.cfg.TTL)
	}
	return l.wall(max(l.rec.Deadline, l.lastSent+l.cfg.TTL))
}

// wall is the wall time of a boot time, for people.
func (l *loop) wall(boot time.Duration) time.Time {
	return l.clock.Now().Add(boot - l.clock.Boot())
}

// await waits for the answer of a call, but not long: the process must end.
func (l *loop) await(c *pendingCall, patience time.Duration) result {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case r := <-l.results:
			if r.seq == c.seq {
				return r
			}
		case <-timer.C:
			return c.timedOut(l.cfg.Resource)
		}
	}
}

// shortLife is how long a hold lives on when the app is being killed.
const shortLife = 5 * time.Second

// briefLife is longer than the kubelet lets an app live on when it has sent TERM to
// the agent: two seconds, when a hook of the app's own has used up the grace period.
const briefLife = 2500 * time.Millisecond

// comeback is how long the kubelet takes to start an agent again, the first time.
// When it may, a hold that is cut short lives on for that and the margin: long
// enough for the next agent to find it in time and, if it cannot keep it, to stop
// the app before another has the lock.
const comeback = 3 * time.Second

// cutShort lets the hold end after life unless a next agent adopts it.
func (l *loop) cutShort(now, life time.Duration) {
	short := now + life
	if short >= l.rec.Deadline {
		l.log.Warn("the app may not have ended yet: the hold is left to end by itself", "by", l.frees())
		return
	}
	l.rec.Deadline, l.rec.Ending = short, true // before it is asked for: the answer may be lost
	if err := l.save(); err != nil {
		l.log.Warn("the shorter hold is not on record, so it is left as it is", "error", err, "by", l.frees())
		return
	}
	l.dropCall()
	l.shortTo = life
	l.launch(shorten, now, lastRequest)
	if r := l.await(l.call, lastRequest); r.err != nil {
		l.log.Warn("could not cut the hold short; it frees itself", "by", l.frees(), "error", r.err)
		return
	}
	l.rec.Ending = false // it has arrived, so that the next process can adopt
	if err := l.save(); err != nil {
		l.log.Warn("the next agent will not keep the hold", "error", err)
	}
	l.log.Warn("the app may not have ended yet: the hold ends soon unless an agent comes back", "by", l.wall(short))
}
