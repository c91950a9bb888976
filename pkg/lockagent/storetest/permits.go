package storetest

import (
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// permits is about semaphores: how many hold at once.
var permits = map[string]func(*scene){
	"as many hold as there are permits, and no more": func(s *scene) {
		for range 3 {
			s.semaphore("a", 3).takes()
		}
		if got := s.semaphore("b", 3).waits(1); got.Limit != 3 {
			s.Errorf("limit %d, want 3", got.Limit)
		}
	},
	"CaseB28: a crashed holder's permit is free after its ttl, and no other": func(s *scene) {
		crashed, alive := s.semaphore("crashed", 2), s.semaphore("alive", 2)
		crashed.takes()
		alive.takes()
		s.pass(20 * time.Second)
		alive.renews(lockagent.Held)
		c, d := s.semaphore("c", 2, shortTTL(time.Minute)), s.semaphore("d", 2, shortTTL(time.Minute))
		if got := c.waits(1).RetryAfter; got <= 0 || got > 11*time.Second {
			s.Errorf("told to look after %s, want about 10s, when the crashed one's permit ends", got)
		}
		d.waits(2)
		s.pass(10*time.Second + time.Millisecond)
		c.takes()
		d.waits(1)
	},
	"CaseB28: a release offers the permits of the crashed as well": func(s *scene) {
		a, crashed := s.semaphore("a", 2), s.semaphore("crashed", 2)
		crashed.takes()
		a.takes()
		c, d := s.semaphore("c", 2, shortTTL(time.Minute)).listens(), s.semaphore("d", 2, shortTTL(time.Minute)).listens()
		c.waits(1)
		d.waits(2)
		s.pass(20 * time.Second)
		a.renews(lockagent.Held)
		s.pass(10*time.Second + time.Millisecond)
		a.releases(true)
		c.hears(lockagent.WakeOffer)
		d.hears(lockagent.WakeOffer)
	},
	"a renewal with a short ttl shortens nobody else's": func(s *scene) {
		long, short := s.semaphore("long", 2, shortTTL(time.Minute)), s.semaphore("short", 2, shortTTL(12*time.Second))
		token := long.takes()
		short.takes()
		short.renews(lockagent.Held)
		s.pass(40 * time.Second)
		short.renews(lockagent.Gone)
		if got := long.renews(lockagent.Held); got != token {
			s.Errorf("token %d, want %d", got, token)
		}
	},
	"each release offers one permit to the next in line": func(s *scene) {
		a, b := s.semaphore("a", 2), s.semaphore("b", 2)
		a.takes()
		b.takes()
		c, d := s.semaphore("c", 2).listens(), s.semaphore("d", 2).listens()
		c.waits(1)
		d.waits(2)
		a.releases(true)
		b.releases(true)
		c.hears(lockagent.WakeOffer)
		d.hears(lockagent.WakeNext)
		d.hears(lockagent.WakeOffer)
		c.renews(lockagent.Held)
		d.renews(lockagent.Held)
	},
	"CaseB58: several permits that free at once are offered at once": func(s *scene) {
		var waiting []*owner
		for range 3 {
			s.semaphore("crashed", 3).takes()
		}
		for i := range 5 {
			w := s.semaphore("w", 3, shortTTL(time.Minute)).listens()
			w.waits(i + 1)
			waiting = append(waiting, w)
		}
		s.pass(ttl + time.Millisecond)
		waiting[4].waits(5)
		for _, w := range waiting[:3] {
			w.hears(lockagent.WakeOffer)
			w.renews(lockagent.Held)
		}
		waiting[3].hears(lockagent.WakeNext)
		waiting[3].waits(1)
	},
	"CaseB31: a permit does not stay free behind a waiter that cannot hear": func(s *scene) {
		a, deaf, c := s.semaphore("a", 2), s.semaphore("deaf", 2), s.semaphore("c", 2).listens()
		a.takes()
		s.semaphore("b", 2).takes()
		deaf.waits(1)
		c.waits(2)
		a.releases(true)
		c.hears(lockagent.WakeOffer)
		c.renews(lockagent.Held)
	},
	"CaseB31: one that asks does not wait behind a free permit": func(s *scene) {
		a, b := s.semaphore("a", 2), s.semaphore("b", 2)
		a.takes()
		b.takes()
		s.semaphore("deaf", 2).waits(1)
		a.releases(true)
		s.semaphore("c", 2).takes()
	},
	"CaseB31: with room for all, the second takes its permit before the first has answered": func(s *scene) {
		a, b := s.semaphore("a", 2), s.semaphore("b", 2)
		a.takes()
		b.takes()
		c, d := s.semaphore("c", 2, shortTTL(time.Minute)).listens(), s.semaphore("d", 2, shortTTL(time.Minute))
		c.waits(1)
		d.waits(2)
		s.pass(ttl + time.Millisecond)
		d.takes()
		c.hears(lockagent.WakeOffer)
		c.renews(lockagent.Held)
	},
	"CaseB30: a lower limit counts at once": func(s *scene) {
		a, b, c := s.semaphore("a", 3), s.semaphore("b", 3), s.semaphore("c", 3)
		a.takes()
		b.takes()
		c.takes()
		lower := s.semaphore("lower", 2).listens()
		if got := lower.waits(1); got.Limit != 2 {
			s.Errorf("limit %d, want 2", got.Limit)
		}
		old := s.semaphore("old", 3)
		old.waits(2)
		a.releases(true)
		lower.waits(1) // two still hold
		old.waits(2)   // and nobody fills up again before it
		b.releases(true)
		lower.hears(lockagent.WakeNext)
		lower.hears(lockagent.WakeOffer)
		lower.renews(lockagent.Held)
		if got := old.waits(1); got.Limit != 2 {
			s.Errorf("limit %d, want 2", got.Limit)
		}
	},
	"CaseB30: nobody passes a waiter with a lower limit, even if it cannot hear": func(s *scene) {
		a := s.semaphore("a", 3)
		a.takes()
		s.semaphore("b", 3).takes()
		s.semaphore("c", 3).takes()
		lower, old := s.semaphore("lower", 2), s.semaphore("old", 3).listens()
		lower.waits(1)
		old.waits(2)
		a.releases(true)
		old.hears(lockagent.WakeNext) // and no offer
		old.waits(2)
	},
	"CaseB30: a higher limit counts once the lower ones are gone": func(s *scene) {
		a, b := s.semaphore("a", 1), s.semaphore("b", 3)
		a.takes()
		if got := b.waits(1); got.Limit != 1 {
			s.Errorf("limit %d, want 1", got.Limit)
		}
		a.releases(true)
		b.takes()
		s.semaphore("c", 3).takes()
		s.semaphore("d", 2).waits(1)
	},
	"CaseB30: a dead holder's limit does not count": func(s *scene) {
		s.semaphore("dead", 1).takes()
		s.pass(ttl + time.Millisecond)
		for range 2 {
			s.semaphore("a", 2).takes()
		}
		s.semaphore("b", 2).waits(1)
	},
}
