package redisstore

import "github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"

// keysOf lists the keys of a lock in the order that lua/lock.lua reads them. R
// is the resource; with K for lock:{R} or semaphore:{R}:
//
//	lock:{R}       string      the mutex: owner id, with the TTL of the hold
//	semaphore:{R}  sorted set  the permits: owner id, scored by expiry in ms
//	K:fence        string      the last fencing token
//	K:queue        sorted set  waiters: owner id, scored by -priority × 10^13 + arrival in ms
//	K:waiters      hash        OWNER:expiry, OWNER:ttl, OWNER:permits, OWNER:offered (and not answered), and who that is
//	K:heartbeats   sorted set  waiters again, scored by when they are forgotten
//	K:holders      hash        OWNER:token, OWNER:since, OWNER:permits, OWNER:asked (to yield), and who that is
//	K:limits       sorted set  a semaphore's holders again, scored by their permits
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
	return []string{
		lock, lock + ":fence", lock + ":queue", lock + ":waiters",
		lock + ":heartbeats", lock + ":holders", lock + ":limits", other,
	}
}

// channelOf names the channel on which an owner is woken.
func (s *Store) channelOf(owner string) string { return s.keys[0] + ":wake:" + owner }
