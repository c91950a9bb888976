package storetest

import (
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// offers is about what a release does for those who wait.
var offers = map[string]func(*scene){
	"CaseB58: the first is offered the lock, the second told that it is next, the third nothing": func(s *scene) {
		a, b, c, d := s.mutex("a"), s.mutex("b").listens(), s.mutex("c").listens(), s.mutex("d").listens()
		first := a.takes()
		b.waits(1)
		c.waits(2)
		d.waits(3)
		a.releases(true)
		b.hears(lockagent.WakeOffer)
		if after := c.hears(lockagent.WakeNext).After; after <= 0 || after > offerTTL+time.Second {
			s.Errorf("c is to look after %s, want at most the offer's %s", after, offerTTL)
		}
		if token := b.renews(lockagent.Held); token <= first {
			s.Errorf("token %d after %d", token, first)
		}
		c.waits(1)
		d.waits(2)
		b.releases(true)
		c.hears(lockagent.WakeOffer)
		d.hears(lockagent.WakeNext) // its first message
	},
	"an offer excludes everyone else": func(s *scene) {
		a, b, c := s.mutex("a"), s.mutex("b").listens(), s.mutex("c")
		a.takes()
		b.waits(1)
		a.releases(true)
		b.hears(lockagent.WakeOffer)
		c.waits(2)
		a.renews(lockagent.Taken)
	},
	"asking again answers an offer as well": func(s *scene) {
		a, b, c := s.mutex("a"), s.mutex("b").listens(), s.mutex("c")
		a.takes()
		b.waits(1)
		a.releases(true)
		b.hears(lockagent.WakeOffer)
		token := b.takes()
		c.waits(1)
		s.pass(ttl - soon)
		if got := b.renews(lockagent.Held); got != token {
			s.Errorf("token %d, want %d", got, token)
		}
	},
	"an answered offer is a full hold": func(s *scene) {
		for _, o := range [][2]*owner{{s.mutex("a"), s.mutex("b")}, {s.semaphore("c", 1), s.semaphore("d", 1)}} {
			a, b := o[0], o[1].listens()
			a.takes()
			b.waits(1)
			a.releases(true)
			b.hears(lockagent.WakeOffer)
			b.renews(lockagent.Held)
			s.pass(ttl - soon)
			b.renews(lockagent.Held)
			b.releases(true)
		}
	},
	"an offer that nobody answers ends by itself, and its waiter keeps its place": func(s *scene) {
		for _, o := range [][3]*owner{
			{s.mutex("a"), s.mutex("b"), s.mutex("c")},
			{s.semaphore("d", 1), s.semaphore("e", 1), s.semaphore("f", 1)},
		} {
			a, b, c := o[0], o[1].listens(), o[2]
			a.takes()
			b.waits(1)
			c.waits(2)
			a.releases(true)
			b.hears(lockagent.WakeOffer)
			s.pass(offerTTL + time.Millisecond)
			b.renews(lockagent.Gone)
			b.takes() // it was still the first
			c.waits(1)
			b.releases(true)
			c.releases(false)
		}
	},
	"who has not answered an offer is passed over until it calls again": func(s *scene) {
		a, b, c := s.mutex("a"), s.mutex("b").listens(), s.mutex("c").listens()
		a.takes()
		b.waits(1)
		c.waits(2)
		a.releases(true)
		b.hears(lockagent.WakeOffer)
		s.pass(offerTTL + time.Millisecond)
		c.takes() // though b hears
		s.mutex("d").waits(2)
	},
	"who has called again is offered the lock again": func(s *scene) {
		a, b, c := s.mutex("a"), s.mutex("b").listens(), s.mutex("c")
		a.takes()
		b.waits(1)
		a.releases(true)
		b.hears(lockagent.WakeOffer)
		s.pass(offerTTL + time.Millisecond)
		c.takes()
		b.waits(1)
		c.releases(true)
		b.hears(lockagent.WakeOffer)
		b.renews(lockagent.Held)
	},
	"an offer is never longer than the waiter's ttl": func(s *scene) {
		a, b := s.mutex("a"), s.mutex("b", shortTTL(2*time.Second)).listens()
		a.takes()
		b.waits(1)
		a.releases(true)
		b.hears(lockagent.WakeOffer)
		s.pass(2*time.Second + time.Millisecond)
		b.renews(lockagent.Gone)
	},
	"who has an offer to answer is not the next one": func(s *scene) {
		for _, o := range [][4]*owner{
			{s.mutex("a"), s.mutex("b"), s.mutex("c"), s.mutex("d")},
			{s.semaphore("e", 1), s.semaphore("f", 1), s.semaphore("g", 1), s.semaphore("h", 1)},
		} {
			a, b, c, d := o[0], o[1].listens(), o[2].listens(), o[3]
			a.takes()
			b.waits(1)
			c.waits(2)
			d.waits(3)
			a.releases(true)
			c.hears(lockagent.WakeNext)
			d.releases(false)
			c.hears(lockagent.WakeNext)
			b.releases(true)
			c.releases(true)
		}
	},
	"giving an offer back offers it to the next": func(s *scene) {
		a, b, c := s.mutex("a"), s.mutex("b").listens(), s.mutex("c").listens()
		a.takes()
		b.waits(1)
		c.waits(2)
		a.releases(true)
		b.hears(lockagent.WakeOffer)
		c.hears(lockagent.WakeNext)
		b.releases(true)
		c.hears(lockagent.WakeOffer)
		c.renews(lockagent.Held)
	},
	"a waiter that does not listen is passed over and keeps its place": func(s *scene) {
		a, deaf, c := s.mutex("a"), s.mutex("deaf"), s.mutex("c").listens()
		a.takes()
		deaf.waits(1)
		c.waits(2)
		a.releases(true)
		c.hears(lockagent.WakeOffer)
		c.renews(lockagent.Held)
		deaf.waits(1)
		c.releases(true)
		deaf.takes()
	},
	"a silent waiter is offered nothing": func(s *scene) {
		a, dead, c := s.mutex("a"), s.mutex("dead").listens(), s.mutex("c", shortTTL(time.Minute)).listens()
		a.takes()
		dead.waits(1)
		c.waits(2)
		s.pass(20 * time.Second)
		a.renews(lockagent.Held)
		s.pass(10*time.Second + time.Millisecond)
		a.releases(true)
		c.hears(lockagent.WakeOffer)
		dead.renews(lockagent.Taken)
	},
	"with nobody to hear, a release leaves the lock free": func(s *scene) {
		a, deaf := s.mutex("a"), s.mutex("deaf")
		a.takes()
		deaf.waits(1)
		a.releases(true)
		s.mutex("newcomer").takes()
	},
	"when the first in line leaves, the new first is told": func(s *scene) {
		a, b, c := s.mutex("a"), s.mutex("b"), s.mutex("c").listens()
		a.takes()
		b.waits(1)
		c.waits(2)
		b.releases(false)
		if after := c.hears(lockagent.WakeNext).After; after <= ttl-soon || after > ttl+time.Second {
			s.Errorf("c is to look after %s, want about %s", after, ttl)
		}
	},
	"when the first in line dies, whoever finds out tells the new first": func(s *scene) {
		a, dead := s.mutex("a"), s.mutex("dead")
		a.takes()
		dead.waits(1)
		s.pass(20 * time.Second)
		a.renews(lockagent.Held)
		b, c := s.mutex("b").listens(), s.mutex("c")
		b.waits(2)
		s.pass(10*time.Second + time.Millisecond)
		c.waits(2)
		b.hears(lockagent.WakeNext)
	},
	"when a hold is shortened, the first in line is told when to look": func(s *scene) {
		for _, o := range [][2]*owner{{s.mutex("a"), s.mutex("b")}, {s.semaphore("c", 1), s.semaphore("d", 1)}} {
			a, b := o[0], o[1].listens()
			a.takes()
			b.waits(1)
			a.shortens(5*time.Second, lockagent.Held)
			if after := b.hears(lockagent.WakeNext).After; after <= 0 || after > 6*time.Second {
				s.Errorf("%s is to look after %s, want at most 5s", b.name, after)
			}
			a.releases(true)
			b.hears(lockagent.WakeOffer)
			b.releases(true)
		}
	},
}
