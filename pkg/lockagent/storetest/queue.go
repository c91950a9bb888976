package storetest

import (
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// queue is about the order of those who wait.
var queue = map[string]func(*scene){
	"first come, first served, and asking again keeps the place": func(s *scene) {
		a, b, c := s.mutex("a"), s.mutex("b"), s.mutex("c")
		a.takes()
		b.waits(1)
		c.waits(2)
		b.waits(1)
		if got := c.waits(2); got.Waiters != 2 {
			s.Errorf("%d waiters, want 2", got.Waiters)
		}
	},
	"a higher priority goes first, equal ones in their order": func(s *scene) {
		a := s.mutex("a")
		a.takes()
		low, mid, high := s.mutex("low", priority(-100)), s.mutex("mid"), s.mutex("high", priority(100))
		low.waits(1)
		mid.waits(1)
		high.waits(1)
		s.mutex("high too", priority(100)).waits(2)
		mid.waits(3)
		low.waits(4)
	},
	"a waiter that is silent for its ttl is forgotten": func(s *scene) {
		a, b, c := s.mutex("a"), s.mutex("b"), s.mutex("c")
		a.takes()
		b.waits(1)
		s.pass(20 * time.Second)
		a.renews(lockagent.Held)
		c.waits(2)
		s.pass(10*time.Second + time.Millisecond)
		if got := c.waits(1); got.Waiters != 1 {
			s.Errorf("%d waiters, want 1", got.Waiters)
		}
		b.waits(2)
	},
	"a forgotten waiter is not counted, wherever it was": func(s *scene) {
		a, b := s.mutex("a"), s.mutex("b", shortTTL(time.Minute))
		a.takes()
		b.waits(1)
		s.mutex("silent").waits(2)
		s.pass(20 * time.Second)
		a.renews(lockagent.Held)
		s.pass(10*time.Second + time.Millisecond)
		if got := b.waits(1); got.Waiters != 1 {
			s.Errorf("%d waiters, want 1", got.Waiters)
		}
	},
	"a waiter that keeps calling is not": func(s *scene) {
		a, b := s.mutex("a"), s.mutex("b")
		a.takes()
		for range 5 {
			b.waits(1)
			s.pass(15 * time.Second)
			a.renews(lockagent.Held)
		}
		b.waits(1)
	},
	"a waiter that leaves is out of the queue": func(s *scene) {
		a, b, c := s.mutex("a"), s.mutex("b"), s.mutex("c")
		a.takes()
		b.waits(1)
		c.waits(2)
		b.releases(false)
		c.waits(1)
		a.releases(true)
		c.takes()
	},
	"nobody slips in before a live waiter that listens": func(s *scene) {
		a, b := s.mutex("a"), s.mutex("b", shortTTL(time.Minute)).listens()
		a.takes()
		b.waits(1)
		s.pass(ttl + time.Millisecond)
		s.mutex("newcomer").waits(2)
		b.hears(lockagent.WakeOffer)
		b.renews(lockagent.Held)
	},
	"a hold that ran out goes to the first that asks, if those before it cannot hear": func(s *scene) {
		a, deaf, c := s.mutex("a"), s.mutex("deaf", shortTTL(time.Minute)), s.mutex("c")
		a.takes()
		deaf.waits(1)
		s.pass(ttl + time.Millisecond)
		c.takes()
		deaf.waits(1)
	},
	"the first in line takes a hold that ran out": func(s *scene) {
		a, b := s.mutex("a"), s.mutex("b", shortTTL(time.Minute))
		first := a.takes()
		after := b.waits(1).RetryAfter
		s.pass(after)
		if token := b.takes(); token <= first {
			s.Errorf("token %d after %d", token, first)
		}
	},
}
