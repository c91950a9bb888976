package storetest

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

const (
	askAfter = 2*time.Second + 10*time.Millisecond  // places in a queue are up to a millisecond apart
	quiet    = 30*time.Second + 10*time.Millisecond // after a question
)

// handoff is about a holder's end for a newer revision of its workload.
var handoff = map[string]func(*scene){
	"CaseB01: a newer revision that has waited for two seconds asks, and has the lock past everyone else": func(s *scene) {
		a, third, b := s.mutex("a", of("web", 1)).listens(), s.mutex("third").listens(), s.mutex("b", of("web", 2)).listens()
		first := a.takes()
		third.waits(1)
		if after := b.waits(2).RetryAfter; after <= 0 || after > askAfter {
			s.Errorf("told to look after %s, want at most %s", after, askAfter)
		}
		a.wantHeir(nil)
		s.pass(askAfter)
		b.asks("a")
		a.hears(lockagent.WakeYield)
		heir := a.wantHeir(b)
		a.transfers(heir, lockagent.Passed)
		b.hears(lockagent.WakeOffer)
		third.waits(1)
		if token := b.renews(lockagent.Held); token <= first {
			s.Errorf("token %d after %d", token, first)
		}
		third.waits(1)
		a.renews(lockagent.Taken)
		a.transfers(heir, lockagent.Passed) // whose first answer was lost
		b.releases(true)
		third.hears(lockagent.WakeNext) // that the hand-over can fail
		third.hears(lockagent.WakeOffer)
	},
	"nobody is asked by another workload, an older or the same revision, or without handoff": func(s *scene) {
		a := s.mutex("a", of("web", 2))
		a.takes()
		for i, other := range []*owner{
			s.mutex("b", of("db", 3)), s.mutex("c", of("web", 1)), s.mutex("d", of("web", 2)), s.mutex("e"),
		} {
			other.listens().waits(i + 1)
			s.pass(askAfter)
			other.asks("")
		}
		a.wantHeir(nil)
	},
	"a holder without handoff is not asked": func(s *scene) {
		a, b := s.mutex("a"), s.mutex("b", of("web", 2)).listens()
		a.takes()
		b.waits(1)
		s.pass(askAfter)
		b.asks("")
	},
	"an heir that has left is none, and for a while nobody asks": func(s *scene) {
		a, b, c := s.mutex("a", of("web", 1)), s.mutex("b", of("web", 2)).listens(), s.mutex("c", of("web", 2)).listens()
		a.takes()
		b.waits(1)
		s.pass(askAfter)
		b.asks("a")
		b.releases(false)
		a.wantHeir(nil)
		c.waits(1)
		s.pass(askAfter)
		if after := c.asks("").RetryAfter; after <= 0 || after > quiet {
			s.Errorf("told to look after %s, want at most %s", after, quiet)
		}
		s.pass(20 * time.Second)
		a.renews(lockagent.Held)
		c.waits(1)
		s.pass(quiet - 20*time.Second)
		c.asks("a")
		a.wantHeir(c)
	},
	"a waiter that does not listen asks nobody, and is nobody's heir": func(s *scene) {
		a, b := s.mutex("a", of("web", 1)), s.mutex("b", of("web", 2))
		a.takes()
		b.waits(1)
		s.pass(askAfter)
		b.asks("")
		ctx, cancel := context.WithCancel(context.Background())
		if _, err := b.store.Listen(ctx, b.claim); err != nil {
			s.Fatal(err)
		}
		b.asks("a")
		cancel()
		s.eventually("b is no heir any more", func() bool {
			r, err := a.store.Renew(s.ctx(), a.claim)
			a.outcome("renew", r, err, lockagent.Held)
			return r.Heir == nil
		})
	},
	"when the heir leaves before the transfer, the holder keeps its hold": func(s *scene) {
		for _, o := range [][2]*owner{
			{s.mutex("a", of("web", 1)), s.mutex("b", of("web", 2))},
			{s.semaphore("c", 1, of("web", 1)), s.semaphore("d", 1, of("web", 2))},
		} {
			a, b := o[0], o[1].listens()
			token := a.takes()
			b.waits(1)
			s.pass(askAfter)
			b.asks(a.name)
			heir := a.wantHeir(b)
			b.releases(false)
			a.transfers(heir, lockagent.Held)
			if got := a.renews(lockagent.Held); got != token {
				s.Errorf("token %d, want %d", got, token)
			}
			a.releases(true)
		}
	},
	"a transfer that comes late does not answer a later question": func(s *scene) {
		a, b := s.mutex("a", of("web", 1)), s.mutex("b", of("web", 2)).listens()
		a.takes()
		b.waits(1)
		s.pass(askAfter)
		b.asks("a")
		late := a.wantHeir(b)
		b.releases(false)
		a.transfers(late, lockagent.Held)
		b.waits(1)
		for range 2 {
			s.pass(quiet / 2)
			a.renews(lockagent.Held)
			b.acquire()
		}
		a.wantHeir(b)
		a.transfers(late, lockagent.Held)
		a.transfers(a.wantHeir(b), lockagent.Passed)
	},
	"a newer waiter takes the place of an heir that has left": func(s *scene) {
		a, b, c := s.mutex("a", of("web", 1)).listens(), s.mutex("b", of("web", 2)).listens(), s.mutex("c", of("web", 3)).listens()
		a.takes()
		b.waits(1)
		s.pass(askAfter)
		b.asks("a")
		heir := a.wantHeir(b)
		c.waits(2)
		b.releases(false)
		c.hears(lockagent.WakeNext)
		c.asks("a")
		a.transfers(heir, lockagent.Passed)
		c.hears(lockagent.WakeOffer)
		c.renews(lockagent.Held)
	},
	"a hold that began after a hand-over is left alone for a while by the revision that had it": func(s *scene) {
		a, b, c := s.mutex("a", of("web", 1)), s.mutex("b", of("web", 2)).listens(), s.mutex("c", of("web", 2)).listens()
		a.takes()
		b.waits(1)
		s.pass(askAfter)
		b.asks("a")
		a.transfers(a.wantHeir(b), lockagent.Passed)
		b.renews(lockagent.Held)
		b.releases(true)
		again := s.mutex("again", of("web", 1))
		again.takes()
		c.waits(1)
		s.pass(askAfter)
		if after := c.asks("").RetryAfter; after <= 0 || after > quiet-askAfter {
			s.Errorf("told to look after %s, want at most %s", after, quiet-askAfter)
		}
		s.pass(quiet/2 - askAfter)
		again.renews(lockagent.Held)
		c.waits(1)
		s.pass(quiet / 2)
		c.asks("again")
	},
	"another rollout, or an undo, does not wait for that": func(s *scene) {
		a, b := s.mutex("a", of("web", 1)), s.mutex("b", of("web", 2)).listens()
		a.takes()
		b.waits(1)
		s.pass(askAfter)
		b.asks("a")
		a.transfers(a.wantHeir(b), lockagent.Passed)
		b.renews(lockagent.Held)
		undone := s.mutex("undone", of("web", 3)).listens()
		undone.waits(1)
		s.pass(askAfter)
		undone.asks("b")
		b.transfers(b.wantHeir(undone), lockagent.Passed)
		undone.renews(lockagent.Held)
	},
	"the lowest revision is asked first, of two the one that has held longer, one at a time": func(s *scene) {
		newer, old, older := s.semaphore("newer", 3, of("web", 2)), s.semaphore("old", 3, of("web", 1)), s.semaphore("older", 3, of("web", 1))
		newer.takes()
		older.takes()
		s.pass(time.Second)
		old.takes()
		b, c := s.semaphore("b", 3, of("web", 3)).listens(), s.semaphore("c", 3, of("web", 3)).listens()
		b.waits(1)
		c.waits(2)
		s.pass(askAfter)
		b.asks("older")
		c.asks("")
		old.wantHeir(nil)
		older.transfers(older.wantHeir(b), lockagent.Passed)
		c.asks("old") // it has held since before
		b.renews(lockagent.Held)
		old.transfers(old.wantHeir(c), lockagent.Passed)
		c.renews(lockagent.Held)
		newer.renews(lockagent.Held)
		old.renews(lockagent.Gone)
	},
	"a hand-over that is not answered ends by itself, and the next in line has been told": func(s *scene) {
		a, third, b := s.mutex("a", of("web", 1)), s.mutex("third").listens(), s.mutex("b", of("web", 2)).listens()
		a.takes()
		third.waits(1)
		b.waits(2)
		s.pass(askAfter)
		b.asks("a")
		a.transfers(a.wantHeir(b), lockagent.Passed)
		if after := third.hears(lockagent.WakeNext).After; after <= 0 || after > offerTTL+time.Second {
			s.Errorf("third is to look after %s, want at most the offer's %s", after, offerTTL)
		}
		s.pass(offerTTL + time.Millisecond)
		b.renews(lockagent.Gone)
		third.takes()
	},
	"an heir with fewer permits waits for its own limit, and the holder has yielded": func(s *scene) {
		var old []*owner
		for _, name := range []string{"a", "b", "c"} {
			o := s.semaphore(name, 3, of("web", 1))
			o.takes()
			s.pass(time.Second)
			old = append(old, o)
		}
		heir := s.semaphore("heir", 2, of("web", 2)).listens()
		heir.waits(1)
		s.pass(askAfter)
		for _, o := range old[:2] {
			heir.asks(o.name)
			o.transfers(o.wantHeir(heir), lockagent.Passed)
		}
		heir.renews(lockagent.Held)
		old[2].renews(lockagent.Held)
	},
	"a hold that has ended is not transferred": func(s *scene) {
		for _, tc := range []struct {
			a, b, c *owner
			then    lockagent.Outcome // once c has it
		}{
			{s.mutex("a", of("web", 1)), s.mutex("b", of("web", 2), shortTTL(time.Minute)), s.mutex("c"), lockagent.Taken},
			{s.semaphore("d", 1, of("web", 1)), s.semaphore("e", 1, of("web", 2), shortTTL(time.Minute)), s.semaphore("f", 1), lockagent.Gone},
		} {
			tc.b.listens()
			tc.a.takes()
			tc.b.waits(1)
			s.pass(askAfter)
			tc.b.asks(tc.a.name)
			heir := tc.a.wantHeir(tc.b)
			s.pass(ttl + time.Millisecond)
			tc.a.transfers(heir, lockagent.Gone)
			tc.b.releases(false)
			tc.c.takes()
			tc.a.transfers(heir, tc.then)
			tc.c.releases(true)
		}
	},
}
