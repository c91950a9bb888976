package redisstore_test

import (
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// check reads the server's keys and compares them with what agents believe.
func (w *world) check() {
	holders := w.holders()
	w.checkLimits(holders)
	w.checkTokens(holders)
	w.checkBeliefs(holders)
	w.checkPlaces(holders)
	for _, key := range w.server.Keys() {
		if w.server.TTL(key) <= 0 {
			w.Fatalf("%s never expires", key)
		}
	}
}

// holders are those whose hold is alive by the server's clock.
func (w *world) holders() []string {
	lock := w.store.Keys()[0]
	if !w.server.Exists(lock) {
		return nil
	}
	if w.kind == agentenv.Mutex {
		owner, err := w.server.Get(lock)
		w.must("get", err)
		return []string{owner}
	}
	members, err := w.server.SortedSet(lock)
	w.must("zset", err)
	var holders []string
	for owner, expiry := range members {
		if int64(expiry) > w.now.UnixMilli() {
			holders = append(holders, owner)
		}
	}
	slices.Sort(holders)
	return holders
}

// checkLimits: never more holders than the smallest permits among them.
func (w *world) checkLimits(holders []string) {
	for _, owner := range holders {
		if limit := w.permits(owner); int64(len(holders)) > limit {
			w.Fatalf("%d hold, of which %s allows %d: %q", len(holders), owner, limit, holders)
		}
	}
}

// checkTokens: a hold keeps its token, a new one has a greater one than all
// before.
func (w *world) checkTokens(holders []string) {
	now := map[string]int64{}
	newest := w.newest
	for _, owner := range holders {
		token := w.token(owner)
		for other, t := range now {
			if t == token {
				w.Fatalf("%s and %s have the same token %d", owner, other, token)
			}
		}
		now[owner] = token
		before, held := w.tokens[owner]
		if held && before == token {
			continue
		}
		// A hold that ended and was granted anew since the last look has a new one.
		if token <= w.newest {
			w.Fatalf("%s has token %d; %d was given before", owner, token, w.newest)
		}
		newest = max(newest, token)
	}
	w.tokens, w.newest = now, newest
}

// checkBeliefs: who takes itself for a holder is one, with that token.
func (w *world) checkBeliefs(holders []string) {
	for _, a := range w.agents {
		if !a.believes(w.now) {
			continue
		}
		if !slices.Contains(holders, a.claim.Owner) {
			w.Fatalf("%s believes to hold for %s more, but %q do", a.claim.Owner, a.deadline.Sub(w.now), holders)
		}
		if token := w.token(a.claim.Owner); token != a.token {
			w.Fatalf("%s believes in token %d, but it has %d", a.claim.Owner, a.token, token)
		}
	}
}

// checkPlaces: who has called within its TTL and got no permit is in the queue.
func (w *world) checkPlaces(holders []string) {
	queue := map[string]float64{}
	if key := w.store.Keys()[2]; w.server.Exists(key) {
		var err error
		queue, err = w.server.SortedSet(key)
		w.must("queue", err)
	}
	for _, a := range w.agents {
		_, queued := queue[a.claim.Owner]
		if w.now.Before(a.queuedUntil) && !queued && !slices.Contains(holders, a.claim.Owner) {
			w.Fatalf("%s has been forgotten %s too early", a.claim.Owner, a.queuedUntil.Sub(w.now))
		}
	}
}

// permits is the limit that a holder has asked for.
func (w *world) permits(owner string) int64 {
	if w.kind == agentenv.Mutex {
		return 1
	}
	permits, err := w.server.ZScore(w.store.Keys()[7], owner)
	w.must("permits of "+owner, err)
	return int64(permits)
}

// token is what is written down of a holder: a mutex' latest grant is its own.
func (w *world) token(owner string) int64 {
	var words []string
	if w.kind == agentenv.Mutex {
		text, err := w.server.Get(w.store.Keys()[1])
		w.must("fence", err)
		words = strings.Fields(text)
		if len(words) < 2 || words[1] != owner {
			w.Fatalf("%s holds, but the latest grant is %q", owner, text)
		}
	} else {
		words = strings.Fields(w.server.HGet(w.store.Keys()[6], owner) + " -")
	}
	token, err := strconv.ParseInt(words[0], 10, 64)
	w.must("token of "+owner, err)
	return token
}
