package memstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// offerTTL is how long an offer waits to be confirmed.
const offerTTL = 3 * time.Second

// lock is one mutex or semaphore. The server's mutex guards it.
type lock struct {
	server *Server
	name   name

	holds   map[string]*hold
	queue   []*waiter // in order
	arrival int64
	ears    map[string]chan lockagent.Wake // of who listens

	questions map[string]*question // by workload
}

type hold struct {
	token   int64
	claim   lockagent.Claim
	since   time.Time
	expires time.Time
}

type waiter struct {
	claim   lockagent.Claim
	arrival int64
	since   time.Time
	expires time.Time
	offered bool // and it has not called since
}

func (l *lock) acquire(c lockagent.Claim) lockagent.Answer {
	purged := l.purge()
	if h := l.holds[c.Owner]; h != nil {
		l.extend(h, c.TTL)
		l.leave(c.Owner)
		return lockagent.Answer{Granted: true, Token: h.token}
	}
	l.enqueue(c)
	l.offer(c.Owner, purged)
	if h := l.holds[c.Owner]; h != nil {
		l.leave(c.Owner)
		return lockagent.Answer{Granted: true, Token: h.token}
	}
	answer := lockagent.Answer{Position: l.place(c.Owner) + 1, Waiters: len(l.queue), Limit: l.limit(c.Permits)}
	if l.nextInLine(c.Owner) {
		answer.RetryAfter = l.earliest()
	}
	asked, again := l.ask(c)
	answer.Asked = asked
	if again > 0 && (answer.RetryAfter == 0 || again < answer.RetryAfter) {
		answer.RetryAfter = again
	}
	return answer
}

// nextInLine tells whether everyone before owner has an offer.
func (l *lock) nextInLine(owner string) bool {
	for _, w := range l.queue[:l.place(owner)] {
		if l.holds[w.claim.Owner] == nil {
			return false
		}
	}
	return true
}

func (l *lock) renew(c lockagent.Claim) lockagent.Renewal {
	l.purge()
	h := l.holds[c.Owner]
	if h == nil {
		return l.lost()
	}
	l.extend(h, c.TTL)
	l.leave(c.Owner)
	h.claim.Revision = max(h.claim.Revision, c.Revision)
	return lockagent.Renewal{Outcome: lockagent.Held, Token: h.token, Heir: l.asks(c, h)}
}

func (l *lock) shorten(c lockagent.Claim, ttl time.Duration) lockagent.Renewal {
	l.purge()
	h := l.holds[c.Owner]
	if h == nil {
		return l.lost()
	}
	if until := l.server.now().Add(ttl); until.Before(h.expires) {
		h.expires = until
		l.offer("", true)
	}
	return lockagent.Renewal{Outcome: lockagent.Held, Token: h.token}
}

func (l *lock) lost() lockagent.Renewal {
	if l.name.kind == agentenv.Mutex && len(l.holds) > 0 {
		return lockagent.Renewal{Outcome: lockagent.Taken}
	}
	return lockagent.Renewal{Outcome: lockagent.Gone}
}

func (l *lock) release(c lockagent.Claim) bool {
	l.purge()
	_, had := l.holds[c.Owner]
	delete(l.holds, c.Owner)
	l.leave(c.Owner)
	l.offer("", true)
	return had
}

// offer goes through the queue while there is room. Who asks takes a permit;
// who listens is offered one, and keeps its place until it confirms; who does
// neither, or left an offer unanswered, is passed over. Nobody passes one for
// whom there is no room: the first of the rest that listens can be told when
// there may be.
func (l *lock) offer(asks string, tell bool) {
	full := false
	for _, w := range l.queue {
		owner := w.claim.Owner
		if l.holds[owner] != nil {
			continue
		}
		ear := l.ears[owner]
		full = full || l.other().held() || len(l.holds) >= l.limit(w.claim.Permits)
		switch {
		case full:
			if !tell || owner == asks {
				return
			}
			if ear != nil {
				say(ear, lockagent.Wake{Kind: lockagent.WakeNext, After: l.earliest()})
				return
			}
		case owner == asks:
			l.take(w.claim, w.claim.TTL)
		case ear != nil && !w.offered:
			l.offerTo(w)
		}
	}
}

// offerTo puts a permit in the name of a waiter that listens.
func (l *lock) offerTo(w *waiter) {
	w.offered = true
	l.take(w.claim, min(offerTTL, w.claim.TTL))
	say(l.ears[w.claim.Owner], lockagent.Wake{Kind: lockagent.WakeOffer})
}

// tellNext tells the first that waits and listens when there may be room.
func (l *lock) tellNext() {
	for _, w := range l.queue {
		if ear := l.ears[w.claim.Owner]; ear != nil && l.holds[w.claim.Owner] == nil {
			say(ear, lockagent.Wake{Kind: lockagent.WakeNext, After: l.earliest()})
			return
		}
	}
}

// say is not heard by who has not listened for long: the heartbeat makes up for it.
func say(ear chan lockagent.Wake, w lockagent.Wake) {
	select {
	case ear <- w:
	default:
	}
}

func (l *lock) take(c lockagent.Claim, ttl time.Duration) {
	l.server.token++
	now := l.server.now()
	l.holds[c.Owner] = &hold{token: l.server.token, claim: c, since: now, expires: now.Add(ttl)}
}

func (l *lock) extend(h *hold, ttl time.Duration) {
	if until := l.server.now().Add(ttl); until.After(h.expires) {
		h.expires = until
	}
}

// enqueue keeps or makes c's place.
func (l *lock) enqueue(c lockagent.Claim) {
	if l.place(c.Owner) < 0 {
		l.arrival++
		l.queue = append(l.queue, &waiter{arrival: l.arrival, claim: c, since: l.server.now()})
		slices.SortFunc(l.queue, func(a, b *waiter) int {
			return cmp.Or(cmp.Compare(b.claim.Priority, a.claim.Priority), cmp.Compare(a.arrival, b.arrival))
		})
	}
	w := l.queue[l.place(c.Owner)]
	w.claim, w.expires, w.offered = c, l.server.now().Add(c.TTL), false
}

func (l *lock) place(owner string) int {
	return slices.IndexFunc(l.queue, func(w *waiter) bool { return w.claim.Owner == owner })
}

func (l *lock) leave(owner string) {
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool { return w.claim.Owner == owner })
}

// purge forgets who is dead, and tells whether there was anyone.
func (l *lock) purge() bool {
	now := l.server.now()
	before := len(l.holds) + len(l.queue)
	for owner, h := range l.holds {
		if !h.expires.After(now) {
			delete(l.holds, owner)
		}
	}
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool { return !w.expires.After(now) })
	return len(l.holds)+len(l.queue) < before
}

// other is the lock of the other kind with the same name.
func (l *lock) other() *lock {
	kind := agentenv.Mutex
	if l.name.kind == agentenv.Mutex {
		kind = agentenv.Semaphore
	}
	return l.server.lock(name{kind, l.name.resource})
}

func (l *lock) held() bool {
	l.purge()
	return len(l.holds) > 0
}

// limit is the smallest of permits and those of the live holders.
func (l *lock) limit(permits int) int {
	for _, h := range l.holds {
		permits = min(permits, h.claim.Permits)
	}
	return permits
}

// earliest is when the next hold can expire.
func (l *lock) earliest() time.Duration {
	var first time.Duration
	for _, h := range l.holds {
		if left := h.expires.Sub(l.server.now()); first == 0 || left < first {
			first = left
		}
	}
	return first
}
