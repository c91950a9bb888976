package main

import (
	"context"
	"strings"
	"testing"
)

// fakeLock locks within the process: whoever can send holds. Broken, it lets
// everyone in.
type fakeLock struct {
	held   chan struct{}
	broken bool
}

func (l fakeLock) lock(ctx context.Context) error {
	if l.broken {
		return nil
	}
	select {
	case l.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l fakeLock) unlock(context.Context) error {
	if !l.broken {
		<-l.held
	}
	return nil
}

func (l fakeLock) close() {}

func fakeContender(broken bool) contender {
	held := make(chan struct{}, 1)
	return contender{"fake", func(_, _ string) (locker, error) { return fakeLock{held, broken}, nil }}
}

func TestRelayCountsHandoffs(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ requeue bool }{
		"the releaser queues again": {true},
		"the releaser stays out":    {false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			r := &relay{
				requeue: tc.requeue, goal: 3,
				started: func() error { calls = append(calls, "started"); return nil },
				ended:   func() error { calls = append(calls, "ended"); return nil },
			}
			if err := r.run(t.Context(), fakeContender(false), &redisServer{}, 5); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(calls, " "); len(r.times) != 3 || got != "started ended" {
				t.Errorf("%d hand-offs, calls %q, want 3 and %q", len(r.times), got, "started ended")
			}
		})
	}
}

func TestRelayFindsTwoHolders(t *testing.T) {
	t.Parallel()
	r := &relay{requeue: true, goal: 3}
	err := r.run(t.Context(), fakeContender(true), &redisServer{}, 5)
	if err == nil || !strings.Contains(err.Error(), "two hold the lock") {
		t.Errorf("error of a lock that lets everyone in: %v", err)
	}
}
