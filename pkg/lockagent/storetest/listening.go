package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// listening is about the channel on which an owner is woken.
var listening = map[string]func(*scene){
	"the channel is closed when its context ends": func(s *scene) {
		a := s.mutex("a")
		ctx, cancel := context.WithCancel(context.Background())
		wakes, err := a.store.Listen(ctx, a.claim)
		if err != nil {
			s.Fatal(err)
		}
		cancel()
		select {
		case w, open := <-wakes:
			if open {
				s.Errorf("got %+v, want the channel closed", w)
			}
		case <-time.After(soon):
			s.Error("the channel is still open")
		}
	},
	"who has stopped listening is passed over": func(s *scene) {
		a, b, c := s.mutex("a"), s.mutex("b"), s.mutex("c").listens()
		ctx, cancel := context.WithCancel(context.Background())
		wakes, err := b.store.Listen(ctx, b.claim)
		if err != nil {
			s.Fatal(err)
		}
		a.takes()
		b.waits(1)
		c.waits(2)
		cancel()
		<-wakes
		if err := b.store.Close(); err != nil { // whose end the server has seen when it has answered another
			s.Fatal(err)
		}
		s.eventually("c is offered the lock, though b is before it", func() bool {
			if _, err := a.store.Release(s.ctx(), a.claim); err != nil {
				s.Fatal(err)
			}
			select {
			case w := <-c.wakes:
				if w.Kind == lockagent.WakeOffer {
					return true
				}
			case <-time.After(soon / 100):
			}
			s.pass(offerTTL + time.Millisecond) // it went to b: try again
			a.acquire()
			return false
		})
	},
	"only the owner's own messages come": func(s *scene) {
		a, b, c := s.mutex("a").listens(), s.mutex("b").listens(), s.mutex("c").listens()
		a.takes()
		b.waits(1)
		c.waits(2)
		b.releases(false)
		c.hears(lockagent.WakeNext)
		a.releases(true)
		c.hears(lockagent.WakeOffer)
		if len(a.wakes)+len(b.wakes) > 0 {
			s.Error("someone else was woken")
		}
	},
	"calls end by their deadline": func(s *scene) {
		a := s.mutex("a")
		ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		defer cancel()
		_, err := a.store.Acquire(ctx, a.claim)
		var failed *lockagent.StoreError
		if !errors.As(err, &failed) || failed.Code != lockagent.CodeTimeout {
			s.Errorf("got %v, want a StoreError with code %q", err, lockagent.CodeTimeout)
		}
	},
}

func (s *scene) eventually(what string, done func() bool) {
	s.Helper()
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); {
		if done() {
			return
		}
	}
	s.Fatalf("not within %s: %s", soon, what)
}

// refused expects Acquire to fail with the code.
func (o *owner) refused(want lockagent.Code) {
	o.s.Helper()
	a, err := o.store.Acquire(o.s.ctx(), o.claim)
	var failed *lockagent.StoreError
	if !errors.As(err, &failed) {
		o.s.Fatalf("%s: got %+v and %v, want a StoreError", o.name, a, err)
	}
	if failed.Code != want || failed.Op != "acquire" || failed.Resource != resource {
		o.s.Fatalf("%s: got %s of %q: %v, want code %q", o.name, failed.Code, failed.Resource, failed, want)
	}
}
