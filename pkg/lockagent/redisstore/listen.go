package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// listener is one waiter's subscription, on a connection of its own that sends
// nothing: no PINGs, since a heartbeat tells a dead Redis, and TCP a dead peer.
type listener struct {
	link    *link
	channel string
	sub     *redis.PubSub
	forget  func() bool // that sub ends with its context
	wakes   chan lockagent.Wake
}

// Listen returns once Redis has confirmed the subscription.
func (s *Store) Listen(ctx context.Context, c lockagent.Claim) (<-chan lockagent.Wake, error) {
	ctx, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(s.closed, cancel)
	l := &listener{link: s.link, channel: s.channelOf(c.Owner), wakes: make(chan lockagent.Wake, 8)}
	if err := l.open(ctx); err != nil {
		forget()
		cancel()
		return nil, s.fail("listen", err)
	}
	s.listeners.Go(func() {
		defer cancel()
		defer forget()
		defer close(l.wakes)
		l.run(ctx)
	})
	return l.wakes, nil
}

// open subscribes, at the node of a cluster that has the lock: only there does a
// script see who listens.
func (l *listener) open(ctx context.Context) (err error) {
	for range maxHops {
		l.subscribe(ctx)
		if _, err = l.sub.ReceiveTimeout(ctx, l.link.timing.call); err == nil {
			return nil
		}
		l.unsubscribe()
		if !l.link.follow(err) {
			break
		}
	}
	return err
}

func (l *listener) unsubscribe() {
	_ = l.sub.Close()
	l.forget()
}

// subscribe opens a subscription that ends with ctx. An error shows when it is
// read from.
func (l *listener) subscribe(ctx context.Context) {
	sub := l.link.client.Subscribe(ctx, l.channel)
	l.forget = context.AfterFunc(ctx, func() { _ = sub.Close() }) // a read heeds no context
	l.sub = sub
}

// run passes messages on until ctx ends. What a read can bring:
//
//	a message          passed on
//	a confirmation     the client has connected and subscribed again: retry
//	an error of Redis  the connection is open but not subscribed: start over
//	another error      the connection broke; the next read connects again
//
// A subscription that breaks soon after it was confirmed counts as one more
// failure: else a proxy that ends each of them would be called in a hot loop.
func (l *listener) run(ctx context.Context) {
	failures, confirmed, broken := 0, time.Now(), false
	for ctx.Err() == nil {
		msg, err := l.sub.Receive(ctx)
		if err == nil {
			if broken {
				confirmed, broken = time.Now(), false
			}
			l.pass(ctx, msg)
			continue
		}
		if !broken && time.Since(confirmed) > l.link.timing.maxPause {
			failures = 0
		}
		broken = true
		l.link.follow(err)
		var fromRedis redis.Error
		if errors.As(err, &fromRedis) {
			l.unsubscribe()
			l.subscribe(ctx)
		}
		failures++
		l.pause(ctx, failures)
	}
	_ = l.sub.Close()
}

func (l *listener) pass(ctx context.Context, msg any) {
	wake := lockagent.Wake{Kind: lockagent.WakeRetry}
	if m, ok := msg.(*redis.Message); ok {
		wake = parseWake(m.Payload)
	}
	select {
	case l.wakes <- wake:
	case <-ctx.Done():
	}
}

// parseWake reads "offer", "yield" or "next MS". What it does not know is a reason to ask.
func parseWake(payload string) lockagent.Wake {
	kind, ms, _ := strings.Cut(payload, " ")
	switch kind {
	case string(lockagent.WakeOffer):
		return lockagent.Wake{Kind: lockagent.WakeOffer}
	case string(lockagent.WakeYield):
		return lockagent.Wake{Kind: lockagent.WakeYield}
	case string(lockagent.WakeNext):
		if n, err := strconv.ParseInt(ms, 10, 32); err == nil && n >= 0 {
			return lockagent.Wake{Kind: lockagent.WakeNext, After: time.Duration(n) * time.Millisecond}
		}
	}
	return lockagent.Wake{Kind: lockagent.WakeRetry}
}

// pause waits before the next attempt: not at all after the first failure, then
// longer and longer, at random, so that a fleet does not come back as one.
func (l *listener) pause(ctx context.Context, failures int) {
	if failures == 1 {
		return
	}
	longest := min(l.link.timing.maxPause, 50*time.Millisecond<<min(failures, 16))
	select {
	case <-time.After(rand.N(longest) + time.Millisecond): //nolint:gosec // spreads load, hides nothing
	case <-ctx.Done():
	}
}
