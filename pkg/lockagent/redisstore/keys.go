package redisstore

import "github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"

// keysOf lists the keys of a lock in the order that lua/lock.lua reads them. R
// is the resource; with K for lock:{R} or semaphore:{R}:
//
//	lock:{R}       string      the mutex: owner id, with the TTL of the hold
//	semaphore:{R}  sorted set  the permits: owner id, scored by expiry in ms
//	K:fence        string      the last fencing token; of a mutex the whole of its latest grant: TOKEN OWNER WHO
//	K:queue        sorted set  waiters: owner id, scored by -priority × 10^13 + arrival in ms
//	K:waiters      hash        OWNER → what it claims: EXPIRY TTL PERMITS OFFERED WHO
//	K:heartbeats   sorted set  waiters again, scored by when they are forgotten
//	K:holders      hash        a semaphore's grants: OWNER → TOKEN WHO
//	K:limits       sorted set  a semaphore's holders again, scored by their permits
//
// Who holds a mutex is what lock:{R} says; where the latest grant has another
// owner, it is a program that is not Holdfast. A token is the time of its grant in
// microseconds, unless clocks went back. OFFERED is 1 after an offer, until the
// waiter calls again. WHO is for those who look: pod=POD namespace=NAMESPACE
// node=NODE; and, with handoff, workload=UID replicaset=UID revision=N, by which
// the revisions of a workload know each other. What they ask of each other is in
// one more key, which expires with the question:
//
//	K:yield:WORKLOAD  hash     holder and heir, its owner ids, and at, in µs: the holder is asked to yield to the heir
//	                           answered: there was an answer a moment ago, and holds from this token on are left alone
//
// lock:{R} and semaphore:{R} are what other programs use that lock in Redis the
// usual way, so these and Holdfast exclude each other. The braces put all keys
// of a lock in one slot of a cluster. K:wake:OWNER is a waiter's channel. Which
// revision a ReplicaSet has is no lock's: see [Publisher].
func keysOf(kind agentenv.Kind, resource string) []string {
	lock, other := "lock:{"+resource+"}", "semaphore:{"+resource+"}"
	if kind == agentenv.Semaphore {
		lock, other = other, lock
	}
	keys := []string{lock, lock + ":fence", lock + ":queue", lock + ":waiters", lock + ":heartbeats", other}
	if kind == agentenv.Semaphore {
		keys = append(keys, lock+":holders", lock+":limits")
	}
	return keys
}

// channelOf names the channel on which an owner is woken.
func (s *Store) channelOf(owner string) string { return s.keys[0] + ":wake:" + owner }
