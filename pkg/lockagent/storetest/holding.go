package storetest

import (
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// holding is about one owner's hold: getting, keeping and ending it.
var holding = map[string]func(*scene){
	"a free mutex is granted, a held one is not": func(s *scene) {
		a, b := s.mutex("a"), s.mutex("b")
		a.takes()
		got := b.waits(1)
		if got.Waiters != 1 || got.Limit != 1 {
			s.Errorf("got %+v, want one waiter and limit 1", got)
		}
		if got.RetryAfter <= ttl-soon || got.RetryAfter > ttl+time.Second {
			s.Errorf("told to look after %s, want about %s", got.RetryAfter, ttl)
		}
	},
	"locks of other names are free": func(s *scene) {
		s.mutex("a").takes()
		b := s.mutex("b")
		b.store = s.Open(s.T, "mutex", "orders/other")
		b.takes()
	},
	"CaseB20: a second release, and one of another's hold, end nothing": func(s *scene) {
		a, b := s.mutex("a"), s.mutex("b")
		a.takes()
		b.releases(false)
		a.renews(lockagent.Held)
		a.releases(true)
		a.releases(false)
		b.takes()
		a.releases(false)
		b.renews(lockagent.Held)
	},
	"CaseB20: of a semaphore too": func(s *scene) {
		a, b, c := s.semaphore("a", 1), s.semaphore("b", 1), s.semaphore("c", 1)
		a.takes()
		b.releases(false)
		c.waits(1)
		a.releases(true)
		a.releases(false)
		c.takes()
		a.releases(false)
		c.renews(lockagent.Held)
	},
	"an acquire whose answer was lost is granted again: same token, full ttl": func(s *scene) {
		for _, a := range []*owner{s.mutex("a"), s.semaphore("b", 2)} {
			first := a.takes()
			s.pass(ttl - soon)
			if again := a.takes(); again != first {
				s.Errorf("%s: token %d the second time, want %d", a.name, again, first)
			}
			s.pass(ttl - soon)
			a.renews(lockagent.Held)
			a.releases(true)
		}
	},
	"a renewal gives a full ttl and the same token": func(s *scene) {
		for _, a := range []*owner{s.mutex("a"), s.semaphore("b", 2)} {
			first := a.takes()
			for range 3 {
				s.pass(ttl - soon)
				if token := a.renews(lockagent.Held); token != first {
					s.Errorf("%s: renewed with token %d, want %d", a.name, token, first)
				}
			}
			a.releases(true)
		}
	},
	"CaseB20: a hold that ran out is gone, one that another has is taken": func(s *scene) {
		a, b := s.mutex("a"), s.mutex("b")
		a.takes()
		s.pass(ttl + time.Millisecond)
		a.renews(lockagent.Gone)
		a.shortens(time.Second, lockagent.Gone)
		a.releases(false)
		b.takes()
		a.renews(lockagent.Taken)
		a.shortens(time.Second, lockagent.Taken)
		b.renews(lockagent.Held)
	},
	"a permit that ran out is never revived": func(s *scene) {
		a, b, c := s.semaphore("a", 1), s.semaphore("b", 1), s.semaphore("c", 1)
		a.takes()
		s.pass(ttl + time.Millisecond)
		a.renews(lockagent.Gone)
		a.shortens(time.Second, lockagent.Gone)
		b.takes()
		a.renews(lockagent.Gone)
		a.releases(false)
		c.waits(1)
	},
	"renewing what was never held makes no hold": func(s *scene) {
		for _, pair := range [][2]*owner{{s.mutex("a"), s.mutex("b")}, {s.semaphore("c", 1), s.semaphore("d", 1)}} {
			pair[0].renews(lockagent.Gone)
			pair[0].shortens(time.Second, lockagent.Gone)
			pair[1].takes()
			pair[1].releases(true)
		}
	},
	"shorten cuts a hold, and only cuts": func(s *scene) {
		for _, pair := range [][2]*owner{{s.mutex("a"), s.mutex("b")}, {s.semaphore("c", 1), s.semaphore("d", 1)}} {
			a, b := pair[0], pair[1]
			token := a.takes()
			if got := a.shortens(20*time.Second, lockagent.Held); got != token {
				s.Errorf("%s: shortened with token %d, want %d", a.name, got, token)
			}
			a.shortens(time.Minute, lockagent.Held)
			if got := b.waits(1).RetryAfter; got > 21*time.Second {
				s.Errorf("%s still has %s, want at most 20s", a.name, got)
			}
			s.pass(20*time.Second + time.Millisecond)
			a.renews(lockagent.Gone)
			b.takes()
			b.releases(true)
		}
	},
	"a shortened hold that is renewed has a full ttl again": func(s *scene) {
		a := s.mutex("a")
		a.takes()
		a.shortens(12*time.Second, lockagent.Held)
		a.renews(lockagent.Held)
		s.pass(ttl - soon)
		a.renews(lockagent.Held)
	},
	"tokens rise from grant to grant, however a hold ends": func(s *scene) {
		var last int64
		grants := func(o *owner) {
			s.Helper()
			token := o.takes()
			if token <= last {
				s.Errorf("%s has token %d after %d", o.name, token, last)
			}
			last = token
		}
		for range 3 {
			a, b := s.mutex("a"), s.mutex("b")
			grants(a)
			a.releases(true)
			grants(b)
			s.pass(ttl + time.Millisecond)
		}
	},
	"holders of one semaphore have tokens of their own": func(s *scene) {
		seen := map[int64]bool{}
		for range 20 {
			token := s.semaphore("a", 20).takes()
			if seen[token] {
				s.Fatalf("token %d twice", token)
			}
			seen[token] = true
		}
	},
	"a name held as one kind is refused as the other, and nothing changes": func(s *scene) {
		m, p := s.mutex("m"), s.semaphore("p", 2)
		m.takes()
		p.refused(lockagent.CodeOtherKind)
		m.renews(lockagent.Held)
		m.releases(true)
		p.takes()
		m.refused(lockagent.CodeOtherKind)
		p.renews(lockagent.Held)
		s.pass(ttl + time.Millisecond)
		if got := m.takes(); got <= 0 {
			s.Errorf("token %d", got)
		}
	},
	"waiters of one kind are offered nothing while the other kind holds": func(s *scene) {
		a, b, leaver := s.mutex("a"), s.mutex("b", shortTTL(time.Minute)), s.mutex("c", shortTTL(time.Minute))
		a.takes()
		b.listens()
		b.waits(1)
		leaver.waits(2)
		s.pass(ttl + time.Millisecond)
		p := s.semaphore("p", 1)
		p.takes()
		leaver.releases(false)
		b.refused(lockagent.CodeOtherKind)
		b.renews(lockagent.Gone)
	},
	"claims that make no sense are refused": func(s *scene) {
		for name, change := range map[string]func(*lockagent.Claim){
			"no ttl":           shortTTL(0),
			"a negative ttl":   shortTTL(-time.Second),
			"half a ms":        shortTTL(1500 * time.Microsecond),
			"no owner":         func(c *lockagent.Claim) { c.Owner = "" },
			"two words":        func(c *lockagent.Claim) { c.Owner = "a b" },
			"no permits":       func(c *lockagent.Claim) { c.Permits = 0 },
			"a priority above": priority(101),
			"a priority below": priority(-101),
		} {
			a := s.mutex(name, change)
			a.refused(lockagent.CodeUnexpected)
		}
		a, b := s.mutex("a"), s.mutex("b")
		a.takes()
		if _, err := a.store.Shorten(s.ctx(), a.claim, 0); err == nil {
			s.Error("shorten to nothing is not refused")
		}
		a.claim.TTL = 0
		if _, err := a.store.Renew(s.ctx(), a.claim); err == nil {
			s.Error("a renewal for no time is not refused")
		}
		b.waits(1)
	},
	"after Close every call fails": func(s *scene) {
		a := s.mutex("a")
		a.takes()
		a.listens()
		if err := a.store.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
		if _, open := <-a.wakes; open {
			s.Error("the channel is still open")
		}
		a.refused(lockagent.CodeUnreachable)
	},
}
