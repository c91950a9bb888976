package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const uncontendedNote = `Uncontended: acquire with token and release, over and over; every caller has a lock and a client of its own. The bare pair
is one script with SET NX PX and INCR, and one that compares and deletes, both sent through go-redis with its defaults. What ours does
beyond that in the same two round trips: a repeated acquire gets the same token, tokens survive a lossy fail-over (Redis' TIME, not only a
counter), the queue is looked at so that nobody overtakes, the holder is recorded for people to see, and the release wakes the next.
bsm/redislock gives no token. Redis spends about 17 µs on a pair of ours and 7 µs on a bare one: six keys and five arguments instead of
two and two, and eight commands instead of four. Those eight take 13 µs in scripts that do nothing else.`

// shortRounds is how many rounds of lockFor there are for each of the others.
const shortRounds = 3

// measureUncontended fills in pairs_per_second for 1 and 16 callers.
func measureUncontended(ctx context.Context, e *bench) error {
	for round := 1; round <= shortRounds*e.rounds; round++ {
		for _, n := range []int{1, 16} {
			for _, c := range inTurn(round, []contender{oursAlone, barePair, redisLock, goRedsync}) {
				rate, err := pairsPerSecond(ctx, c, e.redis, n, e.lockFor)
				if err != nil {
					return fmt.Errorf("uncontended %s, %s: %w", c.name, callers(n), err)
				}
				e.results.add("pairs_per_second", c.name, callers(n), round, rate)
			}
		}
	}
	return nil
}

func callers(n int) string { return fmt.Sprintf("callers: %d", n) }

// pairsPerSecond lets n callers lock and unlock, each its own lock, for as
// long as window lasts.
func pairsPerSecond(ctx context.Context, c contender, s *redisServer, n int, window time.Duration) (float64, error) {
	lockers := make([]locker, 0, n)
	defer func() { closeAll(lockers) }()
	for range n {
		l, err := c.open(s.addr, lockName("uncontended"))
		if err != nil {
			return 0, err
		}
		lockers = append(lockers, l)
		if err := pair(ctx, l); err != nil { // connects and loads the scripts
			return 0, err
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var pairs atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for _, l := range lockers {
		all.Go(func() {
			for time.Since(start) < window {
				if err := pair(ctx, l); err != nil {
					stop(err)
					return
				}
				pairs.Add(1)
			}
		})
	}
	all.Wait()
	return float64(pairs.Load()) / time.Since(start).Seconds(), context.Cause(ctx)
}

func pair(ctx context.Context, l locker) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	return l.unlock(ctx)
}

func uncontendedRows(r *results) []row {
	var rows []row
	for _, n := range []int{1, 16} {
		for _, peer := range []contender{barePair, redisLock, goRedsync} {
			a := aim{}
			if peer.name == barePair.name {
				a = ratioAtLeast(0.8)
			}
			rows = append(rows, row{
				name: "acquire + release, " + callers(n), unit: "pairs/s",
				ours:     r.series("pairs_per_second", ours.name, callers(n)),
				peerName: peer.name, peer: r.series("pairs_per_second", peer.name, callers(n)),
				aim: a,
			})
		}
	}
	return rows
}
