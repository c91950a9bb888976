package redisstore_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// pod is a claim of one pod of a Deployment.
func pod(owner string, revision int64) lockagent.Claim {
	c := claim(owner, 1)
	c.Pod, c.Workload, c.ReplicaSet, c.Revision = owner, "web", "web-rs-"+itoa(revision), revision
	return c
}

// What revisions ask of each other is in a key of its own, which expires whoever
// answers, and which says who has to.
func TestCaseB34AQuestionExpires(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for kind, lock := range lockKeys {
			store, key := s.open(t, kind, resource), lock+":yield:web"
			a, b := pod("a", 1), pod("b", 2)
			take(t, store, a)
			listen(t, store, b)
			acquire(t, store, b)
			s.advance(t, 2010*time.Millisecond)
			if got := acquire(t, store, b).Asked; got != "a" {
				t.Fatalf("%s: asked %q, want a", kind, got)
			}
			asked := s.raw.HGetAll(t.Context(), key).Val()
			if diff := cmp.Diff(map[string]string{"holder": "a", "heir": "b", "at": asked["at"]}, asked); diff != "" {
				t.Errorf("%s (-want +got):\n%s", key, diff)
			}
			wantExpiry(t, s, key, 90*time.Second)

			heir := renew(t, store, a).Heir
			if heir == nil || heir.Question != asked["at"] {
				t.Fatalf("%s: got %+v, want question %s", kind, heir, asked["at"])
			}
			if got, err := store.Transfer(t.Context(), a, *heir); err != nil || got != lockagent.Passed {
				t.Fatalf("%s: transfer gives %q, %v", kind, got, err)
			}
			wantExpiry(t, s, key, 30*time.Second)
			renew(t, store, b)
			release(t, store, b)
			s.advance(t, 31*time.Second)
			if diff := cmp.Diff([]string{lock + ":fence"}, keys(t, s.raw)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			s.raw.FlushAll(t.Context())
		}
	})
}

func wantExpiry(t *testing.T, s server, key string, want time.Duration) {
	t.Helper()
	if left := s.raw.PTTL(t.Context(), key).Val(); left > want || left < want-10*time.Second {
		t.Errorf("%s expires in %s, want %s", key, left, want)
	}
}

// A waiter that is not the heir, and older than the holder, takes nobody's place.
func TestOlderWaiterInheritsNoQuestion(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		a, b, older := pod("a", 2), pod("b", 3), pod("older", 1)
		take(t, store, a)
		listen(t, store, b)
		listen(t, store, older)
		acquire(t, store, older)
		acquire(t, store, b)
		s.advance(t, 2010*time.Millisecond)
		acquire(t, store, b)
		release(t, store, b)
		if got := acquire(t, store, older).Asked; got != "" {
			t.Errorf("an older revision has asked %s", got)
		}
	})
}

// A full Redis grants nothing new to those who come, but a hand-over is one hold
// for another.
func TestHandOverWhenMemoryIsFull(t *testing.T) {
	s := startReal(t)
	for kind := range lockKeys {
		store := s.open(t, kind, resource)
		a, b := pod("a", 1), pod("b", 2)
		take(t, store, a)
		listen(t, store, b)
		acquire(t, store, b)
		s.advance(t, 2010*time.Millisecond)
		acquire(t, store, b)
		heir := renew(t, store, a).Heir
		if heir == nil {
			t.Fatalf("%s: not asked", kind)
		}
		if err := s.raw.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Transfer(t.Context(), a, *heir); err != nil || got != lockagent.Passed {
			t.Errorf("%s: transfer gives %q, %v", kind, got, err)
		}
		renew(t, store, b)
		if err := s.raw.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
			t.Fatal(err)
		}
		release(t, store, b)
	}
}

// A wait and a renewal cost no more calls with handoff, and a question two
// messages: one to the holder, one to the heir.
func TestHandOverCosts(t *testing.T) {
	s := startReal(t)
	store := s.open(t, agentenv.Mutex, resource)
	a, b := pod("a", 1), pod("b", 2)
	take(t, store, a)
	heard, offered := listen(t, store, a), listen(t, store, b)
	acquire(t, store, b)
	renew(t, store, a)
	if got := cost(t, s, func() { acquire(t, store, b); renew(t, store, a) }); got["evalsha"] != 2 || got["publish"] != 0 {
		t.Errorf("at rest: %v, want two scripts and no message", got)
	}
	s.advance(t, 2010*time.Millisecond)
	_, _ = store.Transfer(t.Context(), pod("nobody", 1), lockagent.Heir{}) // so that the script is loaded
	got := cost(t, s, func() {
		acquire(t, store, b)
		<-heard
		heir := renew(t, store, a).Heir
		if heir == nil {
			t.Fatal("not asked")
		}
		if _, err := store.Transfer(t.Context(), a, *heir); err != nil {
			t.Fatal(err)
		}
		<-offered
		renew(t, store, b)
	})
	t.Logf("a hand-over is %d commands: %v", got["all"], got)
	if got["evalsha"] != 4 || got["publish"] != 2 {
		t.Errorf("%v, want four scripts and two messages", got)
	}
}

// Who waits beside many holders of its own revision looks at all of them with each
// heartbeat, in one call: a thousand took Redis five milliseconds, one by one.
func TestWaiterLooksAtManyHoldersAtOnce(t *testing.T) {
	s := startReal(t)
	store := s.open(t, agentenv.Semaphore, resource)
	const permits = 200
	many := func(owner string, revision int64) lockagent.Claim {
		c := pod(owner, revision)
		c.Permits = permits
		return c
	}
	for i := range permits {
		take(t, store, many(itoa(int64(i)), 2))
	}
	waiter := many("waiter", 2)
	listen(t, store, waiter)
	acquire(t, store, waiter)
	if got := cost(t, s, func() { acquire(t, store, waiter) }); got["hget"]+got["zscore"] > 10 {
		t.Errorf("%v, want no calls for each holder", got)
	}
	release(t, store, many("7", 2))
	renew(t, store, waiter)
	old := many("old", 1)
	listen(t, store, old)
	acquire(t, store, old)
	release(t, store, many("8", 2))
	renew(t, store, old)
	newest := many("newest", 2)
	listen(t, store, newest)
	acquire(t, store, newest)
	s.advance(t, 2010*time.Millisecond)
	if got := acquire(t, store, newest).Asked; got != "old" {
		t.Errorf("asked %q, want the one old holder of many", got)
	}
}

// The latest grant is of an older revision, but what holds now is another program.
func TestAnotherProgramIsNotAskedToYield(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		a, b := pod("a", 1), pod("b", 2)
		take(t, store, a)
		release(t, store, a)
		s.raw.Set(t.Context(), mutexKey, "foreigner", ttl)
		listen(t, store, b)
		acquire(t, store, b)
		s.advance(t, 2010*time.Millisecond)
		if got := acquire(t, store, b); got.Asked != "" || got.RetryAfter != time.Second {
			t.Errorf("got %+v, want nobody asked, and to look once a second", got)
		}
		s.raw.Del(t.Context(), mutexKey)
		take(t, store, b)
	})
}

// Another program has taken the lock from under a holder that hands it over, or
// frees it: the heir is behind that program, or has the lock at once.
func TestHandOverOfALockThatAnotherProgramHasTaken(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for name, tc := range map[string]struct {
			meddle func()
			want   lockagent.Outcome
		}{
			"taken": {func() { s.raw.Set(t.Context(), mutexKey, "foreigner", ttl) }, lockagent.Taken},
			"freed": {func() { s.raw.Del(t.Context(), mutexKey) }, lockagent.Gone},
		} {
			store := s.open(t, agentenv.Mutex, resource)
			a, b := pod("a", 1), pod("b", 2)
			first := take(t, store, a)
			listen(t, store, b)
			acquire(t, store, b)
			s.advance(t, 2010*time.Millisecond)
			acquire(t, store, b)
			heir := renew(t, store, a).Heir
			if heir == nil {
				t.Fatalf("%s: not asked", name)
			}
			tc.meddle()
			if got, err := store.Transfer(t.Context(), a, *heir); err != nil || got != tc.want {
				t.Errorf("%s: transfer gives %q, %v, want %q", name, got, err, tc.want)
			}
			s.raw.Del(t.Context(), mutexKey)
			if token := take(t, store, b); token <= first {
				t.Errorf("%s: token %d after %d", name, token, first)
			}
			release(t, store, b)
			s.raw.FlushAll(t.Context())
		}
	})
}
