package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
)

// oursTTL is the longest there is, so that no heartbeat falls into a run.
const oursTTL = 60 * time.Second

var (
	ours = contender{"ours", openOurs}
	// oursAlone does not listen first: nobody else wants the lock.
	oursAlone = contender{"ours", openOursAlone}
)

// ourLocker goes through the store as the agent does.
type ourLocker struct {
	store lockagent.Store
	claim lockagent.Claim // of the hold, or of the latest try
}

// lock listens before it tries, so that no wake-up is missed.
func (l *ourLocker) lock(ctx context.Context) error {
	l.newClaim()
	listening, hangUp := context.WithCancel(ctx)
	defer hangUp()
	wakes, err := l.store.Listen(listening, l.claim)
	if err != nil {
		return err
	}
	held, err := l.acquire(ctx)
	for err == nil && !held {
		select {
		case wake := <-wakes:
			held, err = l.woken(ctx, wake)
		case <-time.After(oursTTL / 3):
			held, err = l.acquire(ctx)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return err
}

// newClaim begins a new acquisition.
func (l *ourLocker) newClaim() {
	l.claim = lockagent.Claim{
		Owner: uuid.NewString(), Permits: 1, TTL: oursTTL,
		Pod: "bench-7c9f6b5d4-x2x9k", Namespace: "bench", Node: "node-1.example.internal", // as an agent says who it is
	}
}

func (l *ourLocker) acquire(ctx context.Context) (bool, error) {
	answer, err := l.store.Acquire(ctx, l.claim)
	return answer.Granted, err
}

// woken confirms an offer. Only the reply to that says that it is held.
func (l *ourLocker) woken(ctx context.Context, wake lockagent.Wake) (bool, error) {
	switch wake.Kind {
	case lockagent.WakeOffer:
		renewal, err := l.store.Renew(ctx, l.claim)
		return renewal.Outcome == lockagent.Held, err
	case lockagent.WakeRetry:
		return l.acquire(ctx)
	default: // next in line: nothing to do until it is offered the lock
		return false, nil
	}
}

func (l *ourLocker) unlock(ctx context.Context) error {
	held, err := l.store.Release(ctx, l.claim)
	if err == nil && !held {
		return fmt.Errorf("release %s: it was not held", l.claim.Owner)
	}
	return err
}

func (l *ourLocker) close() { _ = l.store.Close() }

func openOurs(addr, name string) (locker, error) {
	store, err := redisstore.Open(redisstore.Options{
		URL: "redis://" + addr, Kind: agentenv.Mutex, Resource: name, TTL: oursTTL,
	})
	if err != nil {
		return nil, err
	}
	return &ourLocker{store: store}, nil
}

// aloneLocker tries once.
type aloneLocker struct{ *ourLocker }

func openOursAlone(addr, name string) (locker, error) {
	l, err := openOurs(addr, name)
	if err != nil {
		return nil, err
	}
	return aloneLocker{l.(*ourLocker)}, nil
}

func (l aloneLocker) lock(ctx context.Context) error {
	l.newClaim()
	held, err := l.acquire(ctx)
	if err == nil && !held {
		return errBusy
	}
	return err
}
