package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// peerTTL is what a peer's lock lives where its library has no default: longer
// than any run.
const peerTTL = 60 * time.Second

var (
	goRedsync = contender{"go-redsync", openRedsync}
	redisLock = contender{"bsm/redislock", openRedisLock}
	barePair  = contender{"bare scripts", openBarePair}
)

// redsyncLocker is go-redsync v4 with one pool and all its defaults: a try
// every 50 to 250 ms.
type redsyncLocker struct {
	client *redis.Client
	mutex  *redsync.Mutex
}

func openRedsync(addr, name string) (locker, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	return &redsyncLocker{client, redsync.New(goredis.NewPool(client)).NewMutex(name)}, nil
}

// lock starts over when the library gives up after its 32 tries, as a waiting
// program would.
func (l *redsyncLocker) lock(ctx context.Context) error {
	for {
		err := l.mutex.LockContext(ctx)
		var taken *redsync.ErrTaken
		if err == nil || ctx.Err() != nil || !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed) {
			return err
		}
	}
}

func (l *redsyncLocker) unlock(ctx context.Context) error {
	_, err := l.mutex.UnlockContext(ctx)
	return err
}

func (l *redsyncLocker) close() { _ = l.client.Close() }

// redisLockLocker is bsm/redislock with the retry strategy of its README: a
// try every 100 ms.
type redisLockLocker struct {
	client *redis.Client
	name   string
	held   *redislock.Lock
}

func openRedisLock(addr, name string) (locker, error) {
	return &redisLockLocker{client: redis.NewClient(&redis.Options{Addr: addr}), name: name}, nil
}

func (l *redisLockLocker) lock(ctx context.Context) (err error) {
	l.held, err = redislock.Obtain(ctx, l.client, l.name, peerTTL, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond),
	})
	return err
}

func (l *redisLockLocker) unlock(ctx context.Context) error { return l.held.Release(ctx) }

func (l *redisLockLocker) close() { _ = l.client.Close() }

// bareLocker is the least that gives a token: two scripts through go-redis,
// nothing to retry, nobody to wait for. It is what our store is measured
// against, not something to lock with.
type bareLocker struct {
	client     *redis.Client
	lockKey    string
	counterKey string
	value      string
}

var (
	bareAcquire = redis.NewScript(`
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end
return 0`)
	bareRelease = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)
)

func openBarePair(addr, name string) (locker, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	return &bareLocker{client: client, lockKey: "bare:{" + name + "}", counterKey: "bare:{" + name + "}:fence"}, nil
}

var errBusy = errors.New("busy, though nobody else wants it")

func (l *bareLocker) lock(ctx context.Context) error {
	l.value = uuid.NewString()
	token, err := bareAcquire.Run(ctx, l.client, []string{l.lockKey, l.counterKey}, l.value, peerTTL.Milliseconds()).Int64()
	if err == nil && token == 0 {
		return errBusy
	}
	return err
}

func (l *bareLocker) unlock(ctx context.Context) error {
	return bareRelease.Run(ctx, l.client, []string{l.lockKey}, l.value).Err()
}

func (l *bareLocker) close() { _ = l.client.Close() }
