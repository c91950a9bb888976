package lockagent

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// stallAfter is the gap between two beats of the loop from which on it counts
// as having stood still. A healthy one beats at least every half a second.
const stallAfter = time.Second

// pulse is how probes and watchdog, on their own goroutines, see whether the
// loop is alive. Times are boot times in nanoseconds.
type pulse struct {
	beats    atomic.Uint64 // rounds of the loop
	last     atomic.Int64  // the latest round
	stalled  atomic.Int64  // end of the latest stall; 0 if there was none
	answered atomic.Int64  // the latest good answer to a liveness probe; 0 if there was none
	broken   atomic.Int64  // the latest exec probe that may have failed although it was answered; 0 if there was none
}

// beat notes one round of the loop.
func (p *pulse) beat(now time.Duration) {
	last := time.Duration(p.last.Swap(int64(now)))
	if p.beats.Add(1) > 1 && now-last > stallAfter {
		p.stalled.Store(int64(now))
	}
}

// Live says why the agent must be restarted; nil if it need not be. While
// waiting there is no liveness in a pod, so the watchdog looks after the loop.
func (a *Agent) Live() error {
	now := a.clock.Boot()
	idle := now - time.Duration(a.pulse.last.Load())
	if _, keeping := a.status.keeping(); keeping && idle > a.maxIdle() {
		return fmt.Errorf("renew loop of %q: no sign of life for %s", a.cfg.Resource, idle.Round(time.Millisecond))
	}
	return nil
}

// Probed notes that the kubelet's liveness probe gets a good answer: that tells,
// at TERM, whether the probe was the reason.
//
// An exec probe that was answered has failed all the same if the runtime took too
// long to start it, or to notice its end. It fails only once [agentenv.ProbeTimeout]
// is over, so a good part of that is then silence, before its first question or
// after its last.
func (a *Agent) Probed() {
	now := a.clock.Boot()
	last := time.Duration(a.pulse.answered.Swap(int64(now)))
	if a.cfg.ExecProbes() && last > 0 && now-last > a.maxSilence() {
		a.pulse.broken.Store(int64(now))
	}
}

// ProbeBroken notes that an exec probe did not end well, whatever it was told.
func (a *Agent) ProbeBroken() { a.pulse.broken.Store(int64(a.clock.Boot())) }

// maxSilence is how long no question of an exec probe may come: for one that was
// not answered, and until the next process has been started. Twice that is less
// than what the kubelet grants beyond the time that a probe lasts.
func (a *Agent) maxSilence() time.Duration { return 2*a.probePeriod() + 2*time.Second }

// probedWithin tells whether the kubelet asked, and got an answer, so shortly before
// a moment. An exec probe that was under way goes on asking when the kubelet has
// stopped to probe, so of that it tells nothing.
func (a *Agent) probedWithin(d, moment time.Duration) bool {
	if a.cfg.ExecProbes() {
		return false
	}
	answered := time.Duration(a.pulse.answered.Load())
	return answered > 0 && moment-answered < d
}

// maxIdle is how long the loop of a holder may be silent.
func (a *Agent) maxIdle() time.Duration { return max(2*time.Second, a.cfg.TTL/15) }

// probePeriod is how often the kubelet asks Live: the webhook writes the same.
func (a *Agent) probePeriod() time.Duration { return max(time.Second, a.cfg.TTL/15) }

// wellUntil tells whether the agent was well in the last two probe periods before a
// moment: the loop did not stand still, and the kubelet got its answers. That it
// asks while nothing is held too matters: the first of three probes that fail may
// have come before the hold. An agent that was never asked may be just starting.
func (a *Agent) wellUntil(moment time.Duration) bool {
	from := moment - 2*a.probePeriod()
	if a.cfg.ExecProbes() {
		if broken := time.Duration(a.pulse.broken.Load()); broken > 0 && broken > moment-agentenv.ProbeTimeout {
			return false
		}
		from = moment - a.maxSilence()
	}
	if stalled := time.Duration(a.pulse.stalled.Load()); stalled > 0 && stalled > from {
		return false
	}
	answered := time.Duration(a.pulse.answered.Load())
	return answered == 0 || answered >= from
}
