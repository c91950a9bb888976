package lockagent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// A grant and the time-out meet: whichever comes first, either there is a hold and
// the agent knows it, or nothing of it is left.
func TestTimeoutMeetsGrant(t *testing.T) {
	for name, tc := range map[string]struct {
		op   string
		way  delay
		lost bool
	}{
		"a late channel":                   {op: "listen", way: there},
		"no channel":                       {op: "listen", way: there, lost: true},
		"an acquire that is late":          {op: "acquire", way: there},
		"an acquire answered late":         {op: "acquire", way: back},
		"an acquire whose answer is lost":  {op: "acquire", way: back, lost: true},
		"an offer's answer that is late":   {op: "renew", way: there},
		"an offer confirmed late":          {op: "renew", way: back},
		"an offer confirmed without reply": {op: "renew", way: back, lost: true},
	} {
		for after := -2 * time.Second; after <= 2*time.Second; after += 250 * time.Millisecond {
			bubble(t, name+", "+after.String()+" after", func(t *testing.T) {
				timeoutMeetsGrant(t, tc.op, late{way: tc.way, lost: tc.lost, by: after})
			})
		}
	}
}

// timeoutMeetsGrant has the lock become free a second before the time is over, by
// an offer or by the end of a hold, and the requests op of the last five seconds late.
func timeoutMeetsGrant(t *testing.T, op string, l late) {
	const timeout = 20 * time.Second
	const free = timeout - time.Second
	server := memstore.NewServer()
	holder, claim := other(t, server, "other", free)
	p := newPod(t, server, waitTimeout(timeout)).init()
	end := time.Now().Add(timeout)
	p.store.Intercept(func(ctx context.Context, c memstore.Call, do func()) error {
		left := end.Sub(c.At)
		switch {
		case c.Op == op && left >= 0 && left <= 5*time.Second:
			return l.answer(ctx, c, end, do)
		case c.Op == "listen" && op == "listen" && left > 0: // or there would be none later
			return errors.New("connection refused")
		}
		do()
		return nil
	})
	p.start()
	sleep(free - time.Millisecond)
	if op == "renew" { // an offer to confirm
		if _, err := holder.Release(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
	sleep(timeout)
	if p.calls(op) == 0 {
		t.Fatalf("no %s", op)
	}
	if p.state().Held {
		p.wantHeld(true)
		if got := len(server.Holders()); got != 1 {
			t.Errorf("%d hold, want 1", got)
		}
		return
	}
	p.wantGaveUp(lockagent.CodeWaitTimeout)
}

// delay is where a request is late.
type delay int

const (
	there delay = iota // on its way to the store, which does it whoever still waits
	back               // on its way back
)

// late is a request that is answered, or whose answer is lost, that long after a time.
type late struct {
	way  delay
	lost bool
	by   time.Duration
}

func (l late) answer(ctx context.Context, c memstore.Call, end time.Time, do func()) error {
	then := time.Until(end.Add(l.by))
	if l.way == back {
		do()
		do = func() {}
	}
	done := make(chan struct{})
	time.AfterFunc(max(0, then), func() {
		defer close(done)
		if c.Op != "listen" {
			do()
		}
	})
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.lost {
		return errors.New("connection reset by peer")
	}
	if c.Op == "listen" { // who has gone, or does not know of it, does not
		do()
	}
	return nil
}
