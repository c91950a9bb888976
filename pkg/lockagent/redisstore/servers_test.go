package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/storetest"
)

const ttl = 30 * time.Second

// server is a Redis, real or not, whose time a test can move.
type server struct {
	url     string
	options redisstore.Options // beyond the URL
	raw     *redis.Client
	others  []*redis.Client // the other primaries of a cluster
	advance func(*testing.T, time.Duration)
}

// onEach runs a test on miniredis and on a real redis-server.
func onEach(t *testing.T, test func(*testing.T, server)) {
	t.Run("miniredis", func(t *testing.T) { test(t, startMini(t)) })
	t.Run("redis-server", func(t *testing.T) { test(t, startReal(t)) })
}

// startMini's clock stands still but for advance, and is far from this machine's.
func startMini(t *testing.T) server {
	m := miniredis.RunT(t)
	now := time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC)
	m.SetTime(now)
	m.ClockTTL(true)
	s := server{url: "redis://" + m.Addr(), raw: rawClient(t, m.Addr())}
	s.advance = func(_ *testing.T, d time.Duration) {
		now = now.Add(d)
		m.SetTime(now)
	}
	return s
}

func startReal(t *testing.T, config ...string) server {
	r := redistest.Start(t, config...)
	return realServer(t, r.URL(), r)
}

func (s server) primaries() []*redis.Client { return append([]*redis.Client{s.raw}, s.others...) }

func (s server) bringForward(t *testing.T, d time.Duration) {
	t.Helper()
	for _, raw := range s.primaries() {
		bringForward(t, raw, d)
	}
}

func rawClient(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// open gives a Store of its own, as another agent would have.
func (s server) open(t *testing.T, kind agentenv.Kind, resource string) *redisstore.Store {
	t.Helper()
	o := s.options
	o.URL, o.Kind, o.Resource, o.TTL = s.url, kind, resource, ttl
	store, err := redisstore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func (s server) harness() storetest.Harness {
	return storetest.Harness{
		Open: func(t *testing.T, kind agentenv.Kind, resource string) lockagent.Store {
			return s.open(t, kind, resource)
		},
		Advance: s.advance,
	}
}

// bringForward makes everything that a real server's clock will end, end d
// earlier: as if d had passed, without a test that waits.
func bringForward(t *testing.T, raw *redis.Client, d time.Duration) {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	keys, err := raw.Keys(ctx, "*").Result()
	must(err)
	for _, key := range keys {
		switch {
		case strings.HasSuffix(key, ":heartbeats"), strings.HasSuffix(key, ":queue"), strings.HasPrefix(key, "semaphore:{") && strings.HasSuffix(key, "}"):
			members, err := raw.ZRange(ctx, key, 0, -1).Result()
			must(err)
			for _, m := range members {
				must(raw.ZIncrBy(ctx, key, -float64(d.Milliseconds()), m).Err())
			}
		case strings.HasSuffix(key, ":waiters"):
			fields, err := raw.HGetAll(ctx, key).Result()
			must(err)
			for field, value := range fields {
				first, claim, _ := strings.Cut(value, " ")
				expiry, err := strconv.ParseInt(first, 10, 64)
				must(err)
				must(raw.HSet(ctx, key, field, fmt.Sprint(expiry-d.Milliseconds(), " ", claim)).Err())
			}
		}
		left, err := raw.PTTL(ctx, key).Result()
		must(err)
		if left > 0 {
			must(raw.PExpire(ctx, key, left-d).Err()) // zero or less deletes: it is over
		}
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
