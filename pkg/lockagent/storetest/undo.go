package storetest

import (
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// undo is about ReplicaSets that get a new revision while their pods hold or wait.
var undo = map[string]func(*scene){
	"a holder whose revision has risen is not asked any more": func(s *scene) {
		a, b := s.mutex("a", of("web", 1)), s.mutex("b", of("web", 2)).listens()
		a.takes()
		b.waits(1)
		s.pass(askAfter)
		b.asks("a")
		heir := a.wantHeir(b)
		a.claim.Revision = 3
		a.wantHeir(nil)
		a.transfers(heir, lockagent.Held)
		a.renews(lockagent.Held)
		s.pass(20 * time.Second)
		a.renews(lockagent.Held)
		b.waits(1)
		s.pass(quiet - 20*time.Second)
		b.asks("")
	},
	"pods of one ReplicaSet ask nothing of each other, whoever hears first of its new revision": func(s *scene) {
		a, b, c := s.mutex("a", of("web", 1)), s.mutex("b", of("web", 1)).listens(), s.mutex("c", of("web", 2)).listens()
		a.takes()
		b.claim.Revision = 3
		b.waits(1)
		s.pass(askAfter)
		b.asks("")
		c.waits(2)
		s.pass(askAfter)
		c.asks("a")
		a.wantHeir(c)
		c.releases(false)
		b.asks("") // nor takes it the place of an heir that has left
		a.wantHeir(nil)
	},
	"a waiter whose revision rises asks": func(s *scene) {
		a, b := s.mutex("a", of("web", 1)).listens(), s.mutex("b", of("web", 2))
		b.takes()
		a.waits(1)
		s.pass(askAfter)
		a.asks("")
		a.claim.Revision = 3
		a.asks("b")
		b.transfers(b.wantHeir(a), lockagent.Passed)
		a.hears(lockagent.WakeOffer)
		a.renews(lockagent.Held)
	},
}
