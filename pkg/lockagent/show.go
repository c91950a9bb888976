package lockagent

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// show changes what others see, and publishes it. A hold is in the files before
// anyone is told of it, for the gate may open then, and the app's first look may
// be at the file. change must do the same when called twice.
func (l *loop) show(change func(*State, *lease)) {
	next := l.status.preview(change)
	if next.Held {
		l.publish(next)
	}
	l.status.update(change)
	if !next.Held {
		l.publish(l.status.State())
	}
}

// publish writes the files that the app reads. An error is told once.
func (l *loop) publish(st State) {
	text := ""
	if err := l.files.Publish(st); err != nil {
		text = err.Error()
	}
	if text != l.lastPublishError && text != "" {
		l.log.Error("the app cannot see the state in its files", "error", text)
	}
	l.lastPublishError = text
}

// storeProblem shows what the store failed with.
func (l *loop) storeProblem(err error) {
	code := codeOf(err)
	l.metrics.storeError(code)
	l.problem(Problem{Code: code, Message: err.Error()})
}

// showWarnings shows what is to be known about the store's server, and logs what of
// it is new.
func (l *loop) showWarnings() {
	warner, ok := l.store.(Warner)
	if !ok {
		return
	}
	before, now := l.status.State().Warnings, warner.Warnings()
	if slices.Equal(before, now) {
		return
	}
	for _, w := range now {
		if !slices.Contains(before, w) {
			l.log.Warn("the store is not as it should be", "code", w.Code, "warning", w.Message)
		}
	}
	l.show(func(s *State, _ *lease) { s.Warnings = now })
}

// stateDirProblem shows that the state folder cannot be written.
func (l *loop) stateDirProblem(err error) {
	l.problem(Problem{Code: CodeStateDir, Message: fmt.Sprintf(
		"the state folder cannot be written, without which nothing is acquired: %v; mend it, or set %s to another", err, agentenv.StateDirVar)})
}

// showPlace shows the place in the queue, and if holders that asked for fewer permits
// are why there is none: the smaller number counts, but not in silence.
func (l *loop) showPlace(a Answer) {
	before, differs := l.status.State().Error, l.differingPermits(a.Limit)
	l.show(func(s *State, _ *lease) {
		s.Position, s.Waiters, s.Error = a.Position, a.Waiters, differs
	})
	if differs != nil && (before == nil || *before != *differs) {
		l.log.Warn("the permits of this lock differ", "permits", l.cfg.Permits, "limit", a.Limit)
	}
}

// differingPermits is nil unless limit is lower than what this pod asks for.
func (l *loop) differingPermits(limit int) *Problem {
	if limit <= 0 || limit >= l.cfg.Permits {
		return nil
	}
	return &Problem{Code: CodePermitsDiffer, Message: fmt.Sprintf(
		"this pod has %d permits for %q, but a holder has %d, and the smaller number counts until it ends; give all of them the same number",
		l.cfg.Permits, l.cfg.Resource, limit)}
}

// problem shows p. It is logged when the kind of problem changes, not with each
// attempt, and not for a text that only differs in a port number.
func (l *loop) problem(p Problem) {
	before := l.status.State().Error
	if before != nil && *before == p {
		return
	}
	l.show(func(s *State, _ *lease) { s.Error = &p })
	if before == nil || before.Code != p.Code {
		l.log.Warn("cannot go on, trying again", "code", p.Code, "error", p.Message)
	}
}

// save puts the record into the state folder.
func (l *loop) save() error {
	err := l.rec.save(l.cfg.StateDir)
	l.saved = l.rec.Owner != "" && (l.saved || err == nil)
	return err
}
