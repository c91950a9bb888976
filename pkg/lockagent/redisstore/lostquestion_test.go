package redisstore_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
)

// Whichever key is lost, and whenever in a rollout, the new revision gets the lock in
// the end, with a greater token, and nothing stays for ever.
func TestCaseB01RolloutAfterAKeyWasLost(t *testing.T) {
	moments := map[string]int{"before the question": 0, "after the question": 1, "after the holder has heard": 2}
	s := startReal(t)
	for _, kind := range []agentenv.Kind{agentenv.Mutex, agentenv.Semaphore} {
		store := s.open(t, kind, resource)
		for _, key := range append(store.Keys()[1:], store.Keys()[0]+":yield:web") {
			for moment, after := range moments {
				t.Run(string(kind)+" without "+key+" "+moment, func(t *testing.T) {
					s.raw.FlushAll(t.Context())
					r := startRollout(t, s, store)
					for step := range 3 {
						if step == after {
							s.raw.Del(t.Context(), key)
							wantNoneForEver(t, s)
						}
						r.step(step)
						wantNoneForEver(t, s)
					}
					r.goesThrough()
				})
			}
		}
	}
}

// rolledOut is an old and a new revision's pod at one lock.
type rolledOut struct {
	t        *testing.T
	s        server
	store    *redisstore.Store
	old, new lockagent.Claim
	heir     *lockagent.Heir
}

func startRollout(t *testing.T, s server, store *redisstore.Store) *rolledOut {
	r := &rolledOut{t: t, s: s, store: store, old: pod("old", 1), new: pod("new", 2)}
	r.old.Token = take(t, store, r.old)
	listen(t, store, r.new)
	acquire(t, store, r.new)
	s.advance(t, 2010*time.Millisecond)
	return r
}

// step is what agents do, one after the other: ask, hear, hand over.
func (r *rolledOut) step(n int) {
	r.t.Helper()
	switch n {
	case 0:
		acquire(r.t, r.store, r.new)
	case 1:
		got := renew(r.t, r.store, r.old)
		if got.Outcome == lockagent.Held && got.Token != r.old.Token {
			r.t.Errorf("the old pod's token is %d, was %d", got.Token, r.old.Token)
		}
		r.heir = got.Heir
	default:
		if r.heir == nil {
			return
		}
		if _, err := r.store.Transfer(r.t.Context(), r.old, *r.heir); err != nil {
			r.t.Fatal(err)
		}
	}
}

// goesThrough goes on, nine seconds a time, until the new pod holds.
func (r *rolledOut) goesThrough() {
	r.t.Helper()
	for range 12 {
		if got := renew(r.t, r.store, r.new); got.Outcome == lockagent.Held {
			if got.Token <= r.old.Token {
				r.t.Errorf("token %d after %d", got.Token, r.old.Token)
			}
			return
		}
		r.s.advance(r.t, 9*time.Second)
		for step := range 3 {
			r.step(step)
			wantNoneForEver(r.t, r.s)
		}
	}
	r.t.Errorf("the new pod never holds")
}

func wantNoneForEver(t *testing.T, s server) {
	t.Helper()
	for _, key := range keys(t, s.raw) {
		if s.raw.PTTL(t.Context(), key).Val() == -1 {
			t.Errorf("%s never expires", key)
		}
	}
}
