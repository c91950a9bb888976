package storetest

import (
	"fmt"
	"time"
)

// looking is about who has to ask again without being told to, and when. The
// heartbeats of all others are too far apart for a lock that could be had.
var looking = map[string]func(*scene){
	"the first in line looks when a hold can expire, the others do not": func(s *scene) {
		s.mutex("a").takes()
		if got := s.mutex("b").waits(1).RetryAfter; got <= ttl-soon || got > ttl+time.Second {
			s.Errorf("b is to look after %s, want about %s", got, ttl)
		}
		if got := s.mutex("c").waits(2).RetryAfter; got != 0 {
			s.Errorf("c is to look after %s, want nothing", got)
		}
	},
	"behind offers, the next in line looks when they end": func(s *scene) {
		for _, o := range [][3]*owner{
			{s.mutex("a"), s.mutex("frozen"), s.mutex("c")},
			{s.semaphore("d", 1), s.semaphore("frozen", 1), s.semaphore("f", 1)},
		} {
			a, frozen, c := o[0], o[1], o[2]
			a.takes()
			frozen.claim.TTL = time.Minute
			frozen.listens().waits(1)
			s.pass(ttl + time.Millisecond)
			got := c.waits(2).RetryAfter // it is frozen's turn, which hears, and does nothing
			if got <= 0 || got > offerTTL+time.Second {
				s.Errorf("%s is to look after %s, want about %s", c.name, got, offerTTL)
			}
			s.pass(got)
			c.takes()
			c.releases(true)
		}
	},
	"a lock that only the dead are waiting for is had at once": func(s *scene) {
		a := s.mutex("a")
		a.takes()
		for i := range 450 {
			s.mutex(fmt.Sprint("dead ", i)).acquire()
		}
		s.pass(ttl + time.Millisecond)
		b := s.mutex("b")
		for asked := 1; !b.acquireOrLook(); asked++ {
			if asked == 10 {
				s.Fatal("asked ten times, and still behind the dead")
			}
		}
	},
}

// acquireOrLook tells whether the owner was granted the lock. If not, it lets the
// time pass after which it is to look, which must be short.
func (o *owner) acquireOrLook() bool {
	o.s.Helper()
	a := o.acquire()
	if !a.Granted && (a.RetryAfter <= 0 || a.RetryAfter > time.Second) {
		o.s.Fatalf("%s is to look after %s; nobody has the lock: %+v", o.name, a.RetryAfter, a)
	}
	o.s.pass(a.RetryAfter)
	return a.Granted
}
