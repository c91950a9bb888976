package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const idleNote = `Idle: real holdfast-agent processes. One hundred wait for a lock that another holds, and twenty each hold a lock of their own, while
MONITOR shows what clients send over two thirds of a TTL. One command every ttl/3 is aimed at; the jitter of ±10 % and the window's edges
allow for 1.1. Peers: 100 waiting clients of one held lock, over five seconds.`

const (
	idleWaiters = 100
	idleHolders = 20
	peerWindow  = 5 * time.Second
)

// measureIdle fills in commands_per_third of waiters and holders, and
// idle_commands_per_second of the waiters.
func measureIdle(ctx context.Context, e *bench) error {
	for _, peer := range []contender{goRedsync, redisLock} {
		if err := e.idlePeer(ctx, peer); err != nil {
			return fmt.Errorf("idle %s: %w", peer.name, err)
		}
	}
	program, err := e.agentProgram(ctx)
	if err != nil {
		return err
	}
	var agents []*agent
	defer func() { stopAll(agents) }()
	start := func(resource string) error {
		a, err := startAgent(program, e.folder, e.redis.url(), resource, e.idleTTL, nil)
		if err == nil {
			agents = append(agents, a)
		}
		return err
	}
	busy := lockName("idle-waiting")
	for i := range 1 + idleWaiters + idleHolders {
		resource := busy
		if i > idleWaiters {
			resource = lockName("idle-holding")
		}
		if err := start(resource); err != nil {
			return err
		}
		if resource != busy || i == 0 { // the first, before others come
			if _, err := agents[i].await(ctx, true); err != nil {
				return err
			}
		}
	}
	if err := e.redis.awaitQueue(ctx, busy, idleWaiters); err != nil {
		return err
	}
	return e.watchIdle()
}

// awaitQueue returns once n wait for a mutex of ours.
func (s *redisServer) awaitQueue(ctx context.Context, resource string, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		waiting, err := s.admin.ZCard(ctx, "lock:{"+resource+"}:queue").Result()
		if err != nil {
			return fmt.Errorf("%d of %d queued for %s: %w", waiting, n, resource, err)
		}
		if waiting == n {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// watchIdle counts by what each line names. What names neither lock, such as a
// PING, counts for the waiters, of which there are more.
func (e *bench) watchIdle() error {
	const thirds = 2
	window := thirds * e.idleTTL / 3
	seen, err := e.redis.watch(window)
	if err != nil {
		return err
	}
	holding, waiting := 0, 0
	for _, s := range seen {
		if strings.Contains(s.line, "idle-holding") {
			holding++
		} else {
			waiting++
		}
	}
	waiting = max(waiting-thirds, 0) // the renewals of the one that the others wait for
	setting := fmt.Sprintf("TTL %s", e.idleTTL)
	e.results.add("commands_per_third", "waiter", setting, 1, float64(waiting)/idleWaiters/thirds)
	e.results.add("commands_per_third", "holder", setting, 1, float64(holding)/idleHolders/thirds)
	e.results.add("idle_commands_per_second", ours.name, waiters(idleWaiters), 1, float64(waiting)/window.Seconds())
	return nil
}

func (e *bench) idlePeer(ctx context.Context, c contender) error {
	lockers, err := c.openAll(e.redis.addr, lockName("idle-peer"), 1+idleWaiters)
	if err != nil {
		return err
	}
	defer closeAll(lockers)
	if err := lockers[0].lock(ctx); err != nil {
		return err
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	for _, l := range lockers[1:] {
		go func() { _ = l.lock(waiting) }() // ends with stop; never gets it
	}
	time.Sleep(settle(idleWaiters))
	seen, err := e.redis.watch(peerWindow)
	e.results.add("idle_commands_per_second", c.name, waiters(idleWaiters), 1, float64(len(seen))/peerWindow.Seconds())
	return err
}

func stopAll(agents []*agent) {
	done := make(chan struct{})
	for _, a := range agents {
		go func() { a.stop(); done <- struct{}{} }()
	}
	for range agents {
		<-done
	}
}

func idleRows(r *results) []row {
	var rows []row
	for _, who := range []string{"waiter", "holder"} {
		for _, setting := range r.settings("commands_per_third") {
			rows = append(rows, row{
				name: "commands of an idle " + who + " every ttl/3, " + setting,
				ours: r.series("commands_per_third", who, setting), aim: valueAtMost(1.1),
			})
		}
	}
	for _, peer := range []contender{goRedsync, redisLock} {
		rows = append(rows, row{
			name: "commands a second of 100 idle waiters", unit: "/s",
			ours:     r.series("idle_commands_per_second", ours.name, waiters(idleWaiters)),
			peerName: peer.name, peer: r.series("idle_commands_per_second", peer.name, waiters(idleWaiters)),
		})
	}
	return rows
}
