package lockagent

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Status is the joint between the loop, which writes it, and those who ask: the
// API, the files, the probes. It keeps the lease and computes from the clock
// whether it is held; there is no "held" flag that could go stale.
type Status struct {
	clock  Clock
	margin time.Duration

	mu      sync.Mutex
	base    State         // without what is computed
	lease   lease         // zero unless holding
	changed chan struct{} // closed at the next change
}

// lease is a hold as the agent's own clock sees it.
type lease struct {
	token      int64
	acquiredAt time.Time
	deadline   time.Duration // boot time: the last successful request's start + TTL
}

// NewStatus starts in phase waiting.
func NewStatus(cfg agentenv.Config, clock Clock) *Status {
	return &Status{
		clock:  clock,
		margin: cfg.Margin,
		base: State{
			Version: 1, Kind: cfg.Kind, Resource: cfg.Resource,
			State: Waiting, Since: Timestamp(clock.Now()),
		},
		changed: make(chan struct{}),
	}
}

// State is the truth at this moment.
func (s *Status) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state()
}

func (s *Status) state() State {
	st := s.base
	if s.lease.token == 0 {
		return st
	}
	left := s.lease.deadline - s.clock.Boot()
	acquired, expires := Timestamp(s.lease.acquiredAt), Timestamp(s.clock.Now().Add(left))
	st.Held = left > s.margin && (st.State == Holding || st.State == Degraded)
	st.Token, st.AcquiredAt, st.ExpiresAt = s.lease.token, &acquired, &expires
	return st
}

// keeping tells whether the loop is keeping a hold, and how long that still is
// one: no more than 0 when it has run out and the loop has not acted on it yet.
func (s *Status) keeping() (left time.Duration, keeping bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease.token == 0 || s.base.State != Holding && s.base.State != Degraded {
		return 0, false
	}
	return s.lease.deadline - s.margin - s.clock.Boot(), true
}

// Wait returns the first state for which done is true, or the current one when
// ctx ends. It looks again at each change and when a hold runs out.
func (s *Status) Wait(ctx context.Context, done func(State) bool) State {
	for {
		s.mu.Lock()
		st, changed := s.state(), s.changed
		left := s.lease.deadline - s.margin - s.clock.Boot()
		s.mu.Unlock()
		if done(st) {
			return st
		}
		// A hold that runs out is a change that nobody announces. Not held, there
		// is nothing to wait for but an announcement.
		runOut := time.NewTimer(time.Hour)
		if st.Held {
			runOut.Reset(max(left, time.Millisecond))
		}
		select {
		case <-changed:
		case <-runOut.C:
		case <-ctx.Done():
			runOut.Stop()
			return s.State()
		}
		runOut.Stop()
	}
}

// update changes the base and the lease under the lock and wakes those who
// wait. Since moves only when the phase does.
func (s *Status) update(change func(*State, *lease)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply(change)
	close(s.changed)
	s.changed = make(chan struct{})
}

// preview is what State would be after update, which alone may be called between.
func (s *Status) preview(change func(*State, *lease)) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := Status{clock: s.clock, margin: s.margin, base: s.base, lease: s.lease}
	next.apply(change)
	return next.state()
}

func (s *Status) apply(change func(*State, *lease)) {
	before := s.base.State
	change(&s.base, &s.lease)
	if s.base.State != before {
		s.base.Since = Timestamp(s.clock.Now())
	}
	s.base.Degraded = s.base.State == Degraded
}
