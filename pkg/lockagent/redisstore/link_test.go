package redisstore

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// elsewhere is a finder of which a test says where the primary is.
type elsewhere struct {
	fixed
	addr atomic.Pointer[string]
}

func (e *elsewhere) find(context.Context) (string, error) { return *e.addr.Load(), nil }

// A server that is primary no longer may keep a subscription open for ever. Once
// another one is connected to, it has to end.
func TestSubscriptionMovesWithTheConnection(t *testing.T) {
	first, second := redistest.Start(t), redistest.Start(t)
	s, err := Open(Options{URL: first.URL(), Kind: agentenv.Mutex, Resource: "orders/etl"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	place := &elsewhere{}
	place.addr.Store(&first.Addr)
	s.link.finder = place
	c := lockagent.Claim{Owner: "a", Permits: 1, TTL: time.Minute}
	wakes, err := s.Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := s.Acquire(t.Context(), c); err != nil || !a.Granted {
		t.Fatalf("got %+v, %v", a, err)
	}

	place.addr.Store(&second.Addr)
	first.Do(t, "CLIENT", "KILL", "TYPE", "normal")
	if a, err := s.Acquire(t.Context(), c); err != nil || !a.Granted {
		t.Fatalf("on the second server: got %+v, %v", a, err)
	}
	select {
	case w := <-wakes:
		if w.Kind != lockagent.WakeRetry {
			t.Errorf("the waiter hears %+v, want to ask again", w)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the waiter hears nothing: it listens at the first server")
	}
	if got := second.Do(t, "PUBSUB", "CHANNELS", "*"); got != "1" {
		t.Errorf("%s channels on the second server, want the waiter's", got)
	}
}
