// Package redisstore is a [lockagent.Store] on Redis 6.2 or later, or Valkey: one
// server, one under Sentinels, or a Cluster.
//
// # The way of a call
//
// A method of [Store] (store.go) gives its claim to one Lua script
// (script.go, lua/*.lua), which is the whole step: it reads Redis' own clock,
// decides, writes, and tells the waiters concerned on channels of their own
// (listen.go). No time of this machine is ever sent. Keys and what is in them
// are listed in keys.go.
//
// A release does not only free a permit: it puts it in the name of the first
// waiter that listens, for three seconds, which that waiter makes a full hold by
// renewing. So a hand-off costs two messages however many wait, and nobody slips
// in between. What no release announces (a holder or a waiter that died) the
// first in line finds by its own timer, and everyone by their heartbeat.
//
// # Between revisions
//
// A waiter that belongs to a workload asks a holder of an older revision of it to
// yield (ask.lua), at a call of its own. One key for each workload says who is
// asked by whom, so one of its holders is asked at a time; it expires, so that
// nobody has to answer. The holder is told on its channel and by each renewal, as
// long as the heir is in the queue and listens. Its transfer names the question
// that it answers, makes the heir an offer past everyone else, and finds "passed"
// when it is run again. For half a minute after a hand-over, the revision that had
// it, and older ones, leave a hold that began since alone; after a question that
// came to nothing everyone does. Owners without a workload run other scripts, and
// pay nothing for this.
//
// # The way to the server
//
// An address (address.go) may stand for several servers, of which one has the
// lock's keys now. A link (link.go) is the way there: one client with one
// connection, and a finder (finder.go, sentinels.go) that says where each new
// connection is to lead. A call that a server refuses for being the wrong one is
// made again where it points to. Logins and certificates (login.go, tls.go) are
// read for each connection. Before the first hold a server is looked at
// (fitness.go), and what begins a hold may wait for replicas (replicas.go).
//
// # Failure
//
// A script runs whole or not at all, so the only doubt is whether it ran. Every
// one may be run again: an owner that holds is granted the same token again, a
// waiter keeps its place, a release finds nothing more to do. Nothing is retried
// here, and no error reads as "busy": see [lockagent.StoreError]. A renewal brings
// the hold's token along, so that it keeps it where Redis has lost its record.
//
// Redis out of memory: nothing new is granted, but holds are renewed and
// released. Redis restarted without its data: the holds are gone, and tokens go
// on rising, since they start from the time. A fail-over that loses writes can
// let two hold until the first one's lease ends; the later one's token is
// greater.
package redisstore
