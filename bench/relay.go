package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// holdFor is long enough for the last releaser to be waiting again.
const holdFor = 10 * time.Millisecond

// relay passes one lock along runners until there were enough hand-offs.
type relay struct {
	requeue bool         // who has released queues again
	goal    int          // hand-offs
	started func() error // called with the lock held, before the first release; may be nil
	ended   func() error // called with the lock held, after the last hand-off; may be nil

	holders atomic.Int32 // more than one is a broken lock

	mu         sync.Mutex
	releasedAt time.Time     // zero before the first release
	taken      chan struct{} // closed once the next one holds
	times      []time.Duration
}

var errEnough = errors.New("enough hand-offs")

// run starts the runners, lets them queue, and returns after the last hand-off.
func (r *relay) run(ctx context.Context, c contender, s *redisServer, runners int) error {
	lockers, err := c.openAll(s.addr, lockName("handoff"), runners)
	if err != nil {
		return err
	}
	defer closeAll(lockers)
	ctx, finish := context.WithCancelCause(ctx)
	defer finish(nil)
	ready := make(chan struct{})
	var all sync.WaitGroup
	for _, l := range lockers {
		all.Go(func() {
			if err := r.runner(ctx, l, ready, finish); err != nil && ctx.Err() == nil {
				finish(err)
			}
		})
	}
	select {
	case <-time.After(settle(runners)):
	case <-ctx.Done():
	}
	close(ready)
	all.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, errEnough) {
		return cause
	}
	return nil
}

// settle is how long so many runners need until all of them wait.
func settle(runners int) time.Duration {
	return 300*time.Millisecond + time.Duration(runners)*time.Millisecond
}

// runner locks, holds, releases; once, or again and again.
func (r *relay) runner(ctx context.Context, l locker, ready <-chan struct{}, finish context.CancelCauseFunc) error {
	for {
		if err := l.lock(ctx); err != nil {
			return err
		}
		if err := r.took(ctx, ready); err != nil {
			finish(err) // first, so that nobody takes it for a hand-off
			return errors.Join(err, l.unlock(context.WithoutCancel(ctx)))
		}
		taken := r.releasing()
		if err := l.unlock(ctx); err != nil {
			return err
		}
		if !r.requeue {
			return nil
		}
		select {
		case <-taken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// took notes that a runner holds, and returns when it is to release. It fails
// with errEnough when that was the last hand-off.
func (r *relay) took(ctx context.Context, ready <-chan struct{}) error {
	now := time.Now()
	if r.holders.Add(1) > 1 {
		return errors.New("two hold the lock at once")
	}
	first := r.note(now)
	if first {
		select {
		case <-ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		return call(r.started)
	}
	if len(r.times) == r.goal {
		if err := call(r.ended); err != nil {
			return err
		}
		return errEnough
	}
	if r.requeue {
		time.Sleep(holdFor)
	}
	return ctx.Err()
}

// note ends the hand-off under way, if there is one, and tells whether there
// was none. Only the holder calls it, so times is its own to read until it
// releases.
func (r *relay) note(now time.Time) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.releasedAt.IsZero() {
		return true
	}
	r.times = append(r.times, now.Sub(r.releasedAt))
	close(r.taken)
	return false
}

// releasing starts the clock of the next hand-off, and returns a channel that
// is closed at its end.
func (r *relay) releasing() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holders.Add(-1)
	r.taken = make(chan struct{})
	r.releasedAt = time.Now()
	return r.taken
}

func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}
