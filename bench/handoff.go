package main

import (
	"context"
	"fmt"
)

// A hand-off is the time from the call that releases until the next one's lock
// call has returned. At each release exactly n others wait; the one that
// releases queues again once the next one holds, whatever the contender, so it
// never takes the lock back from those who wait.
const (
	warmHandoffs    = 5  // not counted: connections and scripts get loaded
	countedHandoffs = 10 // over which commands are counted
)

// measureHandoffs fills in the hand-off metrics: times against the peers with
// 10 and 100 waiters, commands also with 1,000 of ours.
func measureHandoffs(ctx context.Context, e *bench) error {
	for round := 1; round <= e.rounds; round++ {
		for _, n := range []int{10, 100} {
			contenders := []contender{ours, goRedsync, redisLock}
			if n < 100 {
				contenders = contenders[:2] // redislock's 70 ms a hand-off would take minutes
			}
			for _, c := range inTurn(round, contenders) {
				if err := e.timeHandoffs(ctx, c, n, round); err != nil {
					return fmt.Errorf("hand-off of %s, %d waiters: %w", c.name, n, err)
				}
			}
		}
		if err := e.timeHandoffs(ctx, ours, 1000, round); err != nil {
			return fmt.Errorf("hand-off, 1,000 waiters: %w", err)
		}
		for _, n := range []int{10, 100, 1000} {
			if err := e.countHandoffs(ctx, ours, n, round); err != nil {
				return fmt.Errorf("commands of a hand-off, %d waiters: %w", n, err)
			}
		}
		if err := e.countHandoffs(ctx, goRedsync, 100, round); err != nil {
			return fmt.Errorf("commands of a hand-off of %s: %w", goRedsync.name, err)
		}
	}
	return nil
}

func waiters(n int) string { return fmt.Sprintf("%d waiters", n) }

func (e *bench) timeHandoffs(ctx context.Context, c contender, n, round int) error {
	relay := &relay{requeue: true, goal: warmHandoffs + e.handoffs}
	if err := relay.run(ctx, c, e.redis, n+1); err != nil {
		return err
	}
	times := milliseconds(relay.times[warmHandoffs:])
	e.results.add("handoff_p50_ms", c.name, waiters(n), round, percentile(times, 50))
	e.results.add("handoff_p99_ms", c.name, waiters(n), round, percentile(times, 99))
	return nil
}

// countHandoffs counts every command that the server executes, those inside
// scripts included, from a release until the next one holds. Nobody queues
// anew, so only the hand-offs count, and what polling waiters do meanwhile.
func (e *bench) countHandoffs(ctx context.Context, c contender, n, round int) error {
	relay := &relay{goal: countedHandoffs}
	var before float64
	relay.started = func() (err error) { before, err = e.redis.commands(ctx); return err }
	var after float64
	relay.ended = func() (err error) { after, err = e.redis.commands(ctx); return err }
	if err := relay.run(ctx, c, e.redis, n+countedHandoffs); err != nil {
		return err
	}
	const own = 1 // the server counts the second INFO only once it has answered it
	e.results.add("handoff_commands", c.name, waiters(n), round, (after-before-own)/countedHandoffs)
	return nil
}

const handoffNote = `Hand-off: from the call that releases until the next one's lock call has returned. Every runner is a client with
connections of its own in one process; at each release exactly the given number wait. A hold lasts 10 ms, and the releaser queues again
(last) once the next one holds, for every contender. Ours goes through the store as the agent does: listen, acquire, wait for the wake-up,
renew to confirm. go-redsync has its defaults (a try every 50 to 250 ms), bsm/redislock its README's strategy (every 100 ms).
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
