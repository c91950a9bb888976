package lockagent

import (
	"context"
	"time"
)

const (
	watchEvery  = time.Second
	stallBeats  = 10                     // of the watchdog's own, without one of the loop's
	helpingHand = 500 * time.Millisecond // to remove the file held; then end without
)

// watch ends the process when the loop no longer decides. It counts its own
// beats, not time, so that a process that stood still as a whole, frozen or
// suspended, is not blamed for it: on waking both go on.
//
// While nothing is held, no kubelet looks at the agent, so a loop that has stood
// still for ten beats ends the process. While holding the kubelet does look, but the
// app must be stopped in time: a hold that has run out and is not acted on ends
// the process one beat later.
func (a *Agent) watch(ctx context.Context) {
	var w watchdog
	timer := time.NewTimer(watchEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if code, end := w.look(a); end {
			a.exit(code)
			return
		}
		timer.Reset(a.untilNextLook())
	}
}

// watchdog is what the last look has seen.
type watchdog struct {
	beats   uint64
	still   int  // looks since the loop's last beat, or since the lock was held
	overdue bool // the hold had run out
}

func (w *watchdog) look(a *Agent) (code int, end bool) {
	if beats := a.pulse.beats.Load(); beats != w.beats || a.status.State().Held {
		w.beats, w.still = beats, 0
	} else {
		w.still++
	}
	left, keeping := a.status.keeping()
	overdue := keeping && left <= 0
	twice := overdue && w.overdue
	w.overdue = overdue
	if twice {
		a.removeHeld()
		if a.cfg.StopsApp() && !a.terminating() {
			a.log.Error("the hold has run out and the loop does not act: ending", "exit", ExitLost)
			return ExitLost, true
		}
	}
	if w.still >= stallBeats {
		a.log.Error("the loop stands still: ending", "exit", ExitWatchdog)
		return ExitWatchdog, true
	}
	return 0, false
}

// untilNextLook is a beat, or the time until the hold runs out if that is
// sooner, so that the beat after it is in time.
func (a *Agent) untilNextLook() time.Duration {
	if left, _ := a.status.keeping(); left > 0 {
		return min(left, watchEvery)
	}
	return watchEvery
}

// removeHeld does it on a goroutine: a disk that hangs may be what keeps the loop.
func (a *Agent) removeHeld() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.files.dropHeld(); err != nil {
			a.log.Error("the file held stays", "error", err)
		}
	}()
	select {
	case <-done:
	case <-time.After(helpingHand):
	}
}
