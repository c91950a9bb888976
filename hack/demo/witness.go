package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// witness reads a lock's keys in Redis by their documented names, past all code
// of Holdfast.
type witness struct{ client *redis.Client }

// reading is what Redis says about a lock at one moment.
type reading struct {
	holders int
	waiters int
	fence   int64         // the last fencing token
	left    time.Duration // until the first hold expires unless it is renewed; 0 if there is none
}

// read looks at l.
func (w witness) read(ctx context.Context, l lock) (reading, error) {
	key := l.key()
	now, err := w.client.Time(ctx).Result()
	if err != nil {
		return reading{}, err
	}
	pipe := w.client.Pipeline()
	waiters := pipe.ZCard(ctx, key+":queue")
	fence := pipe.Get(ctx, key+":fence")
	left := pipe.PTTL(ctx, key)
	live := &redis.ZSliceCmd{}
	if l.kind == agentenv.Semaphore {
		live = pipe.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: fmt.Sprintf("(%d", now.UnixMilli()), Max: "+inf"})
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return reading{}, err
	}
	r := reading{waiters: int(waiters.Val())}
	token, _, _ := strings.Cut(fence.Val(), " ")
	r.fence, _ = strconv.ParseInt(token, 10, 64)
	switch permits := live.Val(); {
	case l.kind == agentenv.Mutex && left.Val() > 0:
		r.holders, r.left = 1, left.Val()
	case len(permits) > 0:
		r.holders, r.left = len(permits), time.UnixMilli(int64(permits[0].Score)).Sub(now)
	}
	return r, nil
}

// lookEvery is how often watchLimit looks.
const lookEvery = 50 * time.Millisecond

// watchLimit looks again and again until ctx ends, and calls violated if more
// hold l than may.
func (w witness) watchLimit(ctx context.Context, l lock, violated func(error)) {
	for ctx.Err() == nil {
		if r, err := w.read(ctx, l); err == nil && r.holders > l.permits {
			violated(fmt.Errorf("lock %q: Redis lists %d holders, %d allowed", l.resource, r.holders, l.permits))
			return
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
	}
}

// close forgets the locks of this run, whose names nobody else uses, and hangs up.
func (w witness) close(locks []lock) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, l := range locks {
		key := l.key()
		w.client.Del(ctx, key, key+":fence", key+":queue", key+":waiters", key+":heartbeats", key+":holders", key+":limits")
	}
	_ = w.client.Close()
}

// key is the documented name of the key that holds a lock.
func (l lock) key() string {
	if l.kind == agentenv.Semaphore {
		return "semaphore:{" + l.resource + "}"
	}
	return "lock:{" + l.resource + "}"
}
