package redisstore_test

import (
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// agent is what the model knows of one owner, in three parts that only the
// network joins: what the agent believes, what it has been told, and what the
// server has done for it.
type agent struct {
	claim  lockagent.Claim
	paused bool
	ended  bool

	token    int64     // of the hold that it believes in
	deadline time.Time // until when it believes
	since    time.Time // first time it believed
	lastSent time.Time // of acquire or renew
	wakeAt   time.Time // of its timer; zero: none

	yields bool            // when it is asked to
	heir   *lockagent.Heir // to whom: its app has ended for that

	queuedUntil time.Time // the server has promised it a place until then

	channel string
	sub     *miniredis.Subscriber
	mu      sync.Mutex
	mail    []string
}

// believes tells whether the agent takes itself for a holder.
func (a *agent) believes(now time.Time) bool { return !a.ended && now.Before(a.deadline) }

func (a *agent) subscribe(w *world) {
	a.channel = w.store.Keys()[0] + ":wake:" + a.claim.Owner
	sub := w.server.NewSubscriber()
	sub.Subscribe(a.channel)
	a.sub = sub
	go func() {
		for m := range sub.Messages() {
			if m.Message == "settle" {
				continue
			}
			a.mu.Lock()
			a.mail = append(a.mail, m.Message)
			a.mu.Unlock()
		}
	}()
}

func (a *agent) unsubscribe() {
	if a.sub != nil {
		a.sub.Unsubscribe(a.channel)
		a.sub.Close()
		a.sub = nil
	}
}

func (a *agent) end() {
	a.ended = true
	a.unsubscribe()
}

// read empties the mailbox.
func (a *agent) read() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	mail := a.mail
	a.mail = nil
	return mail
}

// request prepares a call: the agent sends it now. Running it is its arrival at
// the server, running what that returns the arrival of the answer.
func (a *agent) request(w *world, what string) func() func() {
	if what == "act" {
		what = a.wish()
	}
	sent := w.now
	claim := a.claim
	claim.Token = a.token
	switch what {
	case "renew":
		a.lastSent = sent
		return func() func() { return a.renew(w, claim, sent) }
	case "release":
		a.end()
		return func() func() {
			_, err := w.store.Release(w.ctx(), claim)
			w.must("release", err)
			a.queuedUntil = time.Time{}
			return func() {}
		}
	case "shorten":
		a.end()
		return func() func() {
			r, err := w.store.Shorten(w.ctx(), claim, time.Second)
			w.must("shorten", err)
			if r.Outcome == lockagent.Held {
				a.queuedUntil = time.Time{}
			}
			return func() {}
		}
	case "transfer":
		heir := *a.heir
		a.lastSent = sent
		return func() func() { return a.transfer(w, claim, heir) }
	default:
		a.lastSent = sent
		return func() func() { return a.acquire(w, claim, sent) }
	}
}

// wish is what the messages in the mailbox, or else the state, ask for.
func (a *agent) wish() string {
	for _, m := range a.read() {
		if m == "offer" {
			return "renew"
		}
	}
	switch {
	case a.heir != nil:
		return "transfer"
	case a.token != 0:
		return "renew"
	}
	return "acquire"
}

func (a *agent) acquire(w *world, claim lockagent.Claim, sent time.Time) func() {
	answer, err := w.store.Acquire(w.ctx(), claim)
	w.must("acquire", err)
	a.queuedUntil = time.Time{}
	if !answer.Granted {
		a.queuedUntil = w.now.Add(claim.TTL)
	}
	return func() {
		if answer.Granted {
			a.told(w, answer.Token, sent)
			return
		}
		a.wakeAt = time.Time{}
		if answer.Position == 1 && answer.RetryAfter > 0 {
			a.wakeAt = w.now.Add(answer.RetryAfter)
		}
	}
}

func (a *agent) renew(w *world, claim lockagent.Claim, sent time.Time) func() {
	r, err := w.store.Renew(w.ctx(), claim)
	w.must("renew", err)
	if r.Outcome == lockagent.Held {
		a.queuedUntil = time.Time{}
		return func() {
			a.told(w, r.Token, sent)
			a.asked(w, r.Heir)
		}
	}
	return func() {
		if !a.believes(w.now) {
			a.token = 0 // ask again; a belief ends by its deadline alone
		}
	}
}

// asked stops the app of one that yields: from then on it believes in nothing.
func (a *agent) asked(w *world, heir *lockagent.Heir) {
	if heir != nil && a.yields && a.believes(w.now) {
		a.heir, a.deadline = heir, time.Time{}
	}
}

// transfer hands over. Who has done so ends; who need not goes on with its hold.
func (a *agent) transfer(w *world, claim lockagent.Claim, heir lockagent.Heir) func() {
	outcome, err := w.store.Transfer(w.ctx(), claim, heir)
	w.must("transfer", err)
	return func() {
		switch {
		case a.heir == nil || *a.heir != heir: // the answer to another one
		case outcome == lockagent.Held:
			a.heir = nil
		default:
			a.heir = nil
			a.end()
		}
	}
}

// told is the arrival of a good answer, perhaps a late one.
func (a *agent) told(w *world, token int64, sent time.Time) {
	if a.heir != nil { // it has yielded, whatever an old answer says
		return
	}
	if until := sent.Add(a.claim.TTL); until.After(a.deadline) {
		if a.token != token {
			a.since = w.now
		}
		a.token, a.deadline = token, until
	}
}

// behave is a good agent's turn at one moment of the end. True: it held for a
// second and has gone.
func (a *agent) behave(w *world) bool {
	if a.believes(w.now) {
		if w.now.Sub(a.since) >= time.Second {
			a.request(w, "release")()()
			return true
		}
		if w.now.Sub(a.lastSent) >= a.claim.TTL/3 {
			a.request(w, "renew")()()
		}
		return false
	}
	if a.heir != nil {
		a.request(w, "transfer")()()
		return a.ended
	}
	a.token = 0
	due := w.now.Sub(a.lastSent) >= a.claim.TTL/3 || !a.wakeAt.IsZero() && !w.now.Before(a.wakeAt)
	for _, m := range a.read() {
		if m == "offer" {
			a.request(w, "renew")()()
			return false
		}
		if after, ok := strings.CutPrefix(m, "next "); ok {
			ms, err := time.ParseDuration(after + "ms")
			w.must("next", err)
			a.wakeAt = w.now.Add(ms)
		}
	}
	if due {
		a.wakeAt = time.Time{}
		a.request(w, "acquire")()()
	}
	return false
}
