package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
)

// locker is one client of one lock with connections of its own, as a pod has.
// One goroutine uses it.
type locker interface {
	// lock returns once the lock is held.
	lock(ctx context.Context) error
	// unlock gives back what lock took.
	unlock(ctx context.Context) error
	close()
}

// contender is a way to lock, ours or a peer's, with the defaults of its
// documentation.
type contender struct {
	name string
	open func(addr, name string) (locker, error)
}

// openAll opens n lockers of one lock.
func (c contender) openAll(addr, name string, n int) ([]locker, error) {
	lockers := make([]locker, 0, n)
	for range n {
		l, err := c.open(addr, name)
		if err != nil {
			closeAll(lockers)
			return nil, err
		}
		lockers = append(lockers, l)
	}
	return lockers, nil
}

func closeAll(lockers []locker) {
	for _, l := range lockers {
		l.close()
	}
}

// inTurn is the order of contenders in a round, from 1: forwards, then
// backwards, so that none is always the first after a pause.
func inTurn[T any](round int, contenders []T) []T {
	order := slices.Clone(contenders)
	if round%2 == 0 {
		slices.Reverse(order)
	}
	return order
}

var lockNames atomic.Int64

// lockName is a lock that no other run uses, so that none starts with the
// queue of the one before.
func lockName(figure string) string {
	return fmt.Sprintf("bench/%s-%d", figure, lockNames.Add(1))
}
