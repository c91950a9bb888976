package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

func TestMain(m *testing.M) {
	// After a failure to connect the client's pool sleeps for a second before it
	// finds that it is closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// within polls until done is true, which must be soon.
func within(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(20 * time.Second); !done(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}

func subscribers(t *testing.T, s server) int {
	t.Helper()
	list, err := s.raw.Do(t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "id=")
}

func killSubscribers(t *testing.T, s server) {
	t.Helper()
	if err := s.raw.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
}

// wakesWith reads until the kind comes. A connection that breaks twice brings
// more than one retry.
func wakesWith(t *testing.T, wakes <-chan lockagent.Wake, want lockagent.WakeKind) lockagent.Wake {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case w, open := <-wakes:
			if !open {
				t.Fatalf("the channel is closed, want %q", want)
			}
			if w.Kind == want {
				return w
			}
		case <-timeout:
			t.Fatalf("no %q in time", want)
		}
	}
}

func TestBrokenSubscriptionIsRenewedAndTold(t *testing.T) {
	s := startReal(t)
	store := s.open(t, agentenv.Mutex, resource)
	take(t, store, claim("a", 1))
	acquire(t, store, claim("b", 1))
	wakes := listen(t, store, claim("b", 1))

	killSubscribers(t, s)
	release(t, store, claim("a", 1)) // whose message may be missed
	wakesWith(t, wakes, lockagent.WakeRetry)
	token := take(t, store, claim("b", 1))

	acquire(t, store, claim("c", 1))
	next := listen(t, store, claim("c", 1))
	killSubscribers(t, s)
	wakesWith(t, next, lockagent.WakeRetry)
	release(t, store, claim("b", 1))
	wakesWith(t, next, lockagent.WakeOffer)
	if got := renew(t, store, claim("c", 1)); got.Token <= token {
		t.Errorf("got %+v, want a token above %d", got, token)
	}
}

func TestRefusedSubscriptionIsTriedAgain(t *testing.T) {
	s := startReal(t)
	store := s.open(t, agentenv.Mutex, resource)
	wakes := listen(t, store, claim("a", 1))
	allow := func(rule string) {
		t.Helper()
		if err := s.raw.Do(t.Context(), "ACL", "SETUSER", "default", rule).Err(); err != nil {
			t.Fatal(err)
		}
	}
	allow("-subscribe")
	killSubscribers(t, s)
	within(t, "the refused attempts", func() bool {
		log, err := s.raw.Do(t.Context(), "ACL", "LOG").Slice()
		if err != nil {
			t.Fatal(err)
		}
		return len(log) > 0
	})
	allow("+subscribe")
	wakesWith(t, wakes, lockagent.WakeRetry)
}

func TestListeningEndsWithItsContextAndLeavesNoConnection(t *testing.T) {
	s := startReal(t)
	store := s.open(t, agentenv.Mutex, resource)
	ctx, cancel := context.WithCancel(t.Context())
	wakes, err := store.Listen(ctx, claim("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	if n := subscribers(t, s); n != 1 {
		t.Fatalf("%d subscribers, want 1", n)
	}
	cancel()
	for range wakes { // until it is closed
	}
	within(t, "the connection's end", func() bool { return subscribers(t, s) == 0 })
}

func TestUnreadMessagesDoNotKeepAListenerFromEnding(t *testing.T) {
	s := startReal(t)
	store := s.open(t, agentenv.Mutex, resource)
	ctx, cancel := context.WithCancel(t.Context())
	wakes, err := store.Listen(ctx, claim("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 { // more than any buffer
		s.raw.Publish(t.Context(), mutexKey+":wake:a", "offer")
	}
	cancel()
	for range wakes {
	}
	within(t, "the connection's end", func() bool { return subscribers(t, s) == 0 })
}

func TestMessagesThatMakeNoSenseAreAReasonToAsk(t *testing.T) {
	s := startMini(t)
	store := s.open(t, agentenv.Mutex, resource)
	wakes := listen(t, store, claim("a", 1))
	for message, want := range map[string]lockagent.Wake{
		"offer":                     {Kind: lockagent.WakeOffer},
		"next 1500":                 {Kind: lockagent.WakeNext, After: 1500 * time.Millisecond},
		"next 0":                    {Kind: lockagent.WakeNext},
		"next -1":                   {Kind: lockagent.WakeRetry},
		"next 99999999999999999999": {Kind: lockagent.WakeRetry},
		"next":                      {Kind: lockagent.WakeRetry},
		"":                          {Kind: lockagent.WakeRetry},
		"yield":                     {Kind: lockagent.WakeYield},
		"stop":                      {Kind: lockagent.WakeRetry},
	} {
		s.raw.Publish(t.Context(), mutexKey+":wake:a", message)
		if got := <-wakes; got != want {
			t.Errorf("%q gives %+v, want %+v", message, got, want)
		}
	}
}
