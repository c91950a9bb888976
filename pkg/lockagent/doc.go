// Package lockagent is the agent that stands beside an app: it takes one hold
// of one lock, keeps it, tells the app, and says when the app must stop.
//
// # What it does not do
//
// A lease cannot stop a process that is paused: between the app's last look at
// the clock and its write, the lock may have passed on. Only a resource that
// compares fencing tokens is safe from that. The agent can neither stop an app
// itself: with gate "start" it ends, and the kubelet stops the app; a kubelet
// that hangs stops nothing. And it trusts one Redis' clock and memory: see
// package redisstore for what happens when they fail.
//
// # The way of a lock
//
//	waiting ──granted, or an offer confirmed──▶ holding ◀──▶ degraded
//	   ▲                                           │   (a renewal failed)
//	   │ on-lost: notify, with a new owner id      ├──▶ released  (the app, or the end of the pod)
//	   ├───────────────────────────── lost ◀───────┤
//	   └── once handed over ───── yielding ◀───────┘   (to a newer revision)
//
// A wait that may end without the lock is an attempt (attempt.go): by on-busy
// fail or a wait-timeout the agent leaves the queue for good (quit.go), and stays
// waiting, with that as its error, until another gate asks.
//
// One goroutine, the loop (loop.go), owns every decision. It never waits for
// Redis: each call runs in a goroutine of its own, bounded by a time-out, and
// posts its outcome back. What the loop decides is published in a [Status],
// which API, files and probes read.
//
// # Handoff
//
// A Deployment starts its new pod before it ends the old one, which would wait for
// each other. So a waiter asks the holder of an older revision of its workload to
// yield: the store tells the holder on its channel and at each renewal. What
// follows (yield.go), and where it can stop:
//
//  1. The renewal says that the heir is still there. Else nothing happens.
//  2. "Yielding" goes on record, with the epoch; held is removed; exit 86 has the
//     kubelet stop the app and restart the pod in place. The store still has the
//     old hold, so nobody slips in between. A pod that is ending goes on instead,
//     and hands over when its app has ended.
//  3. The next process looks at the epoch. Unchanged, the app may run: exit 86
//     again. Changed, it is gone: the hold is transferred to the heir, which
//     confirms it by a renewal of its own. A lost answer is asked for again.
//  4. The heir has gone meanwhile: the hold goes on, and the app starts again. The
//     hold has run out: the old pod queues anew.
//
// An undo gives an old ReplicaSet the highest revision, so each request brings the
// one that was last published (revision.go); a failing read changes nothing.
//
// # Time
//
// A hold is good until deadline = CLOCK_BOOTTIME before the request that got or
// renewed it was sent + TTL. The agent calls itself holding until
// deadline - margin; from there it stops the app. Whether it holds is computed
// from the clock at each question, never remembered, so a frozen loop, a lost
// timer or a suspended machine cannot make it lie.
//
// TTL : margin : renewal relate like this: a renewal is sent every TTL/3 ± 10 %
// and retried until deadline - margin, so at least two rounds of renewals can
// fail before a hold is lost; the margin is what stopping the app takes.
//
// # Failure
//
// Redis silent or wrong while waiting: stay, say why, try again with back-off.
// While holding: degraded, retry, lost at deadline - margin. An own process
// that dies: the record (record.go) has the owner id, written before the
// request was sent, so the next process adopts the hold or knows that the app
// may be running without one. A loop that stalls: /livez fails, and the
// watchdog (watchdog.go) ends the process where no kubelet would.
package lockagent
