package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

func TestWriteSecret(t *testing.T) {
	cases := map[string]struct {
		url  string
		want map[string]string
	}{
		"without credentials": {"redis://127.0.0.1:6379/3", map[string]string{"url": "redis://127.0.0.1:6379/3"}},
		"with a password":     {"redis://:pa%2Fss@localhost:6379", map[string]string{"url": "redis://localhost:6379", "password": "pa/ss"}},
		"with a user, on a socket": {
			"unix://me:pass@/run/redis.sock?db=2",
			map[string]string{"url": "unix:///run/redis.sock?db=2", "username": "me", "password": "pass"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "secret")
			if err := (server{url: tc.url}).writeSecret(dir); err != nil {
				t.Fatal(err)
			}
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, f := range files {
				b, err := os.ReadFile(filepath.Join(dir, f.Name()))
				if err != nil {
					t.Fatal(err)
				}
				got[f.Name()] = string(b)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("secret (-want +got):\n%s", diff)
			}
		})
	}
}

// embedded is the Redis of the demo, and a witness of it.
func embedded(t *testing.T) (witness, *redis.Client) {
	t.Helper()
	s, err := startRedis("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	client, err := s.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return witness{client}, client
}

var (
	mutexLock     = lock{agentenv.Mutex, "demo/etl", 1}
	semaphoreLock = lock{agentenv.Semaphore, "demo/cap", 2}
)

func TestWitnessReads(t *testing.T) {
	w, client := embedded(t)
	ctx := t.Context()
	in := func(d time.Duration) float64 { return float64(time.Now().Add(d).UnixMilli()) }
	client.Set(ctx, "lock:{demo/etl}", "owner", time.Minute)
	client.Set(ctx, "lock:{demo/etl}:fence", "1795962756208704 owner pod=etl-0", time.Hour)
	client.ZAdd(ctx, "lock:{demo/etl}:queue", redis.Z{Member: "a"}, redis.Z{Member: "b"})
	client.ZAdd(ctx, "semaphore:{demo/cap}",
		redis.Z{Member: "expired", Score: in(-time.Second)},
		redis.Z{Member: "later", Score: in(time.Hour)},
		redis.Z{Member: "sooner", Score: in(time.Minute)})

	cases := map[string]struct {
		lock lock
		want reading // left is compared to a second
	}{
		"a mutex":                          {mutexLock, reading{holders: 1, waiters: 2, fence: 1795962756208704, left: time.Minute}},
		"a semaphore, expired not counted": {semaphoreLock, reading{holders: 2, left: time.Minute}},
		"a lock that nobody has":           {lock{agentenv.Mutex, "demo/free", 1}, reading{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := w.read(ctx, tc.lock)
			if err != nil {
				t.Fatal(err)
			}
			got.left = got.left.Round(10 * time.Second)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(reading{})); diff != "" {
				t.Errorf("reading (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWitnessSeesTooManyHolders(t *testing.T) {
	w, client := embedded(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	far := float64(time.Now().Add(time.Hour).UnixMilli())
	for _, owner := range []string{"a", "b", "c"} {
		client.ZAdd(ctx, semaphoreLock.key(), redis.Z{Member: owner, Score: far})
	}
	w.watchLimit(ctx, semaphoreLock, cancel) // returns once it has seen it
	want := `lock "demo/cap": Redis lists 3 holders, 2 allowed`
	if diff := cmp.Diff(want, errorText(context.Cause(ctx))); diff != "" {
		t.Errorf("violation (-want +got):\n%s", diff)
	}
}

// The keys expire as time goes by, without anyone telling the embedded Redis.
func TestEmbeddedRedisExpiresKeys(t *testing.T) {
	_, client := embedded(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	client.Set(ctx, "key", "value", 20*time.Millisecond)
	if err := waitUntil(ctx, func() bool { return client.Exists(ctx, "key").Val() == 0 }); err != nil {
		t.Errorf("the key is still there: %v", err)
	}
}

func TestWitnessCloseForgetsTheLocks(t *testing.T) {
	w, client := embedded(t)
	ctx := t.Context()
	client.Set(ctx, "lock:{demo/etl}:fence", "7", 0)
	client.Set(ctx, "lock:{else/etl}:fence", "8", 0)
	observer := redis.NewClient(client.Options())
	defer func() { _ = observer.Close() }()
	w.close([]lock{mutexLock})
	if diff := cmp.Diff([]string{"lock:{else/etl}:fence"}, observer.Keys(ctx, "*").Val()); diff != "" {
		t.Errorf("keys left (-want +got):\n%s", diff)
	}
}
