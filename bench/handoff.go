package main

import (
	"context"
	"fmt"
	"time"
)

// A hand-off is the time from the call that releases until the next one's lock
// call has returned. At each release exactly n others wait; the one that
// releases queues again once the next one holds, whatever the contender, so it
// never takes the lock back from those who wait.
const (
	warmHandoffs    = 5  // not counted: connections and scripts get loaded
	countedHandoffs = 10 // over which commands are counted
)

// load is one contender with so many waiters.
type load struct {
	contender
	waiters int
}

var (
	// bsm/redislock's 70 ms a hand-off with 10 waiters would take minutes.
	timedLoads = []load{
		{ours, 10},
		{goRedsync, 10},
		{ours, 100},
		{goRedsync, 100},
		{redisLock, 100},
		{ours, 1000},
	}
	countedLoads = []load{{ours, 10}, {ours, 100}, {ours, 1000}, {goRedsync, 100}}
)

// measureHandoffs fills in the hand-off metrics.
func measureHandoffs(ctx context.Context, e *bench) error {
	for round := 1; round <= e.rounds; round++ {
		for _, l := range inTurn(round, timedLoads) {
			if err := e.timeHandoffs(ctx, l, round); err != nil {
				return fmt.Errorf("hand-off of %s, %s: %w", l.name, waiters(l.waiters), err)
			}
		}
		for _, l := range countedLoads {
			if err := e.countHandoffs(ctx, l, round); err != nil {
				return fmt.Errorf("commands of a hand-off of %s, %s: %w", l.name, waiters(l.waiters), err)
			}
		}
		if err := e.timeRoundTrips(ctx, round); err != nil {
			return err
		}
	}
	return nil
}

func waiters(n int) string { return fmt.Sprintf("%d waiters", n) }

func (e *bench) timeHandoffs(ctx context.Context, l load, round int) error {
	relay := &relay{requeue: true, goal: warmHandoffs + e.handoffs}
	if err := relay.run(ctx, l.contender, e.redis, l.waiters+1); err != nil {
		return err
	}
	times := milliseconds(relay.times[warmHandoffs:])
	e.results.add("handoff_p50_ms", l.name, waiters(l.waiters), round, percentile(times, 50))
	e.results.add("handoff_p99_ms", l.name, waiters(l.waiters), round, percentile(times, 99))
	return nil
}

// timeRoundTrips fills in what no hand-off can be faster than: its release and
// its confirmation are a round trip each, to a Redis that was at rest.
func (e *bench) timeRoundTrips(ctx context.Context, round int) error {
	times := make([]time.Duration, e.handoffs)
	for i := range times {
		time.Sleep(holdFor)
		start := time.Now()
		for range 2 {
			if err := e.redis.admin.Ping(ctx).Err(); err != nil {
				return err
			}
		}
		times[i] = time.Since(start)
	}
	e.results.add("handoff_p50_ms", roundTrips, waiters(100), round, percentile(milliseconds(times), 50))
	return nil
}

const roundTrips = "two PINGs"

// countHandoffs counts every command that the server executes, those inside
// scripts included, from a release until the next one holds. Nobody queues
// anew, so only the hand-offs count, and what polling waiters do meanwhile.
func (e *bench) countHandoffs(ctx context.Context, l load, round int) error {
	relay := &relay{goal: countedHandoffs}
	var before float64
	relay.started = func() (err error) { before, err = e.redis.commands(ctx); return err }
	var after float64
	relay.ended = func() (err error) { after, err = e.redis.commands(ctx); return err }
	if err := relay.run(ctx, l.contender, e.redis, l.waiters+countedHandoffs); err != nil {
		return err
	}
	const own = 1 // the server counts the second INFO only once it has answered it
	e.results.add("handoff_commands", l.name, waiters(l.waiters), round, (after-before-own)/countedHandoffs)
	return nil
}

const handoffNote = `Hand-off: from the call that releases until the next one's lock call has returned. Every runner is a client with
connections of its own in one process; at each release exactly the given number wait. A hold lasts 10 ms, and the releaser queues again
(last) once the next one holds, for every contender. Ours goes through the store as the agent does: listen, acquire, wait for the wake-up,
renew to confirm. go-redsync has its defaults (a try every 50 to 250 ms), bsm/redislock its README's strategy (every 100 ms).
Two PINGs, one after the other to a Redis at rest, are what no hand-off can be faster than. Ours is round trips and nothing else, so it is
slow on a busy machine, where a round trip is; a peer that polls is as slow as its timer anywhere.
Commands are what Redis counts as processed (total_commands_processed), each command inside a script included, over ten hand-offs without
holding or queueing anew.`

func handoffRows(r *results) []row {
	var rows []row
	for _, n := range []int{100, 10} {
		for _, metric := range []string{"p50", "p99"} {
			limit := map[string]aim{"p50": ratioAtMost(0.3), "p99": ratioAtMost(0.1)}[metric]
			if n != 100 {
				limit = aim{}
			}
			rows = append(rows, handoffRow(r, metric, n, goRedsync, limit))
		}
	}
	for _, metric := range []string{"p50", "p99"} {
		rows = append(rows, handoffRow(r, metric, 100, redisLock, aim{}))
	}
	rows = append(rows, handoffRow(r, "p50", 100, contender{name: roundTrips}, aim{}))
	for _, metric := range []string{"p50", "p99"} {
		rows = append(rows, handoffRow(r, metric, 1000, contender{}, aim{}))
	}
	for _, n := range []int{10, 100, 1000} {
		rows = append(rows, row{
			name:     "Redis commands a hand-off, " + waiters(n),
			ours:     r.series("handoff_commands", ours.name, waiters(n)),
			peerName: goRedsync.name,
			peer:     r.series("handoff_commands", goRedsync.name, waiters(n)),
			aim:      valueAtMost(30),
		})
	}
	return rows
}

func handoffRow(r *results, percentile string, n int, peer contender, a aim) row {
	metric := "handoff_" + percentile + "_ms"
	return row{
		name: "hand-off " + percentile + ", " + waiters(n), unit: "ms",
		ours:     r.series(metric, ours.name, waiters(n)),
		peerName: peer.name, peer: r.series(metric, peer.name, waiters(n)),
		aim: a,
	}
}
