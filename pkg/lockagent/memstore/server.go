// Package memstore is a lock server in memory, for tests of the agent's timing:
// it runs in a synctest bubble and can be made silent, slow or forgetful. It
// keeps the contract of [lockagent.Store] as one Redis does, but proves nothing
// about Redis.
package memstore

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// offerTTL is how long an offer waits to be confirmed.
const offerTTL = 3 * time.Second

// Server is one lock.
type Server struct {
	mu      sync.Mutex
	now     func() time.Time
	token   int64
	arrival int64
	holds   map[string]*hold
	queue   []*waiter // in order
	ears    map[string]chan lockagent.Wake
}

type hold struct {
	token   int64
	permits int
	expires time.Time
}

type waiter struct {
	claim   lockagent.Claim
	arrival int64
	expires time.Time
}

// NewServer is a free lock that lives by time.Now.
func NewServer() *Server {
	return &Server{
		now:   time.Now,
		holds: map[string]*hold{}, ears: map[string]chan lockagent.Wake{},
	}
}

// Holders are the owners whose holds are alive, offers included.
func (s *Server) Holders() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.purge()
	var owners []string
	for owner := range s.holds {
		owners = append(owners, owner)
	}
	slices.Sort(owners)
	return owners
}

// Queue is who waits, in order.
func (s *Server) Queue() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.purge()
	var owners []string
	for _, w := range s.queue {
		owners = append(owners, w.claim.Owner)
	}
	return owners
}

// Forget loses all data but the last token, as a restart would.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.holds)
	s.queue = nil
}

// Give makes owner the holder of a mutex, whoever had it.
func (s *Server) Give(owner string, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.holds)
	s.take(lockagent.Claim{Owner: owner, Permits: 1}, ttl)
}

// Drop ends owner's hold and tells nobody, as an expiry does.
func (s *Server) Drop(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, owner)
}

func (s *Server) purge() {
	now := s.now()
	for owner, h := range s.holds {
		if !h.expires.After(now) {
			delete(s.holds, owner)
		}
	}
	s.queue = slices.DeleteFunc(s.queue, func(w *waiter) bool { return !w.expires.After(now) })
}

func (s *Server) acquire(c lockagent.Claim) lockagent.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.purge()
	if h := s.holds[c.Owner]; h != nil {
		s.extend(h, c.TTL)
		s.leave(c.Owner)
		return lockagent.Answer{Granted: true, Token: h.token}
	}
	position := s.enqueue(c)
	if free := s.limit(c.Permits) - len(s.holds); position <= free {
		s.leave(c.Owner)
		return lockagent.Answer{Granted: true, Token: s.take(c, c.TTL)}
	}
	a := lockagent.Answer{Position: position, Waiters: len(s.queue), Limit: s.limit(c.Permits)}
	if position == 1 {
		a.RetryAfter = s.earliest()
	}
	return a
}

func (s *Server) renew(c lockagent.Claim) lockagent.Renewal {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.purge()
	h := s.holds[c.Owner]
	if h == nil {
		return s.lost(c)
	}
	s.extend(h, c.TTL)
	s.leave(c.Owner)
	return lockagent.Renewal{Outcome: lockagent.Held, Token: h.token}
}

func (s *Server) shorten(c lockagent.Claim, ttl time.Duration) lockagent.Renewal {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.purge()
	h := s.holds[c.Owner]
	if h == nil {
		return s.lost(c)
	}
	if until := s.now().Add(ttl); until.Before(h.expires) {
		h.expires = until
	}
	return lockagent.Renewal{Outcome: lockagent.Held, Token: h.token}
}

func (s *Server) lost(c lockagent.Claim) lockagent.Renewal {
	if c.Permits == 1 && len(s.holds) > 0 {
		return lockagent.Renewal{Outcome: lockagent.Taken}
	}
	return lockagent.Renewal{Outcome: lockagent.Gone}
}

func (s *Server) release(c lockagent.Claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.purge()
	_, had := s.holds[c.Owner]
	delete(s.holds, c.Owner)
	s.leave(c.Owner)
	s.offer()
	return had
}

// offer gives what is free to the first in line, who keep their places until
// they confirm, and tells the one behind them that it is first now.
func (s *Server) offer() {
	for _, w := range s.queue {
		if s.holds[w.claim.Owner] != nil {
			continue
		}
		if len(s.holds) >= s.limit(w.claim.Permits) {
			s.tell(w, lockagent.Wake{Kind: lockagent.WakeNext, After: s.earliest()})
			return
		}
		s.take(w.claim, offerTTL)
		s.tell(w, lockagent.Wake{Kind: lockagent.WakeOffer})
	}
}

func (s *Server) tell(w *waiter, wake lockagent.Wake) {
	select {
	case s.ears[w.claim.Owner] <- wake:
	default: // nobody listens, or has for long: the heartbeat is the backstop
	}
}

func (s *Server) take(c lockagent.Claim, ttl time.Duration) int64 {
	s.token++
	s.holds[c.Owner] = &hold{token: s.token, permits: c.Permits, expires: s.now().Add(ttl)}
	return s.token
}

func (s *Server) extend(h *hold, ttl time.Duration) {
	if until := s.now().Add(ttl); until.After(h.expires) {
		h.expires = until
	}
}

// enqueue keeps or makes c's place, and returns it.
func (s *Server) enqueue(c lockagent.Claim) int {
	place := func() int {
		return slices.IndexFunc(s.queue, func(w *waiter) bool { return w.claim.Owner == c.Owner })
	}
	if place() < 0 {
		s.arrival++
		s.queue = append(s.queue, &waiter{claim: c, arrival: s.arrival})
		slices.SortFunc(s.queue, func(a, b *waiter) int {
			return cmp.Or(cmp.Compare(b.claim.Priority, a.claim.Priority), cmp.Compare(a.arrival, b.arrival))
		})
	}
	s.queue[place()].expires = s.now().Add(c.TTL)
	return place() + 1
}

func (s *Server) leave(owner string) {
	s.queue = slices.DeleteFunc(s.queue, func(w *waiter) bool { return w.claim.Owner == owner })
}

// limit is the smallest of permits and those of the live holders.
func (s *Server) limit(permits int) int {
	for _, h := range s.holds {
		permits = min(permits, h.permits)
	}
	return permits
}

// earliest is when the next hold can expire.
func (s *Server) earliest() time.Duration {
	var first time.Duration
	for _, h := range s.holds {
		if left := h.expires.Sub(s.now()); first == 0 || left < first {
			first = left
		}
	}
	return first
}
