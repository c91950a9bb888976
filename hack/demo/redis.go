package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/util/rand"
)

// server is the Redis of this demo.
type server struct {
	url       string
	what      string // for people
	namespace string // for this run's locks
	close     func()
}

// startRedis uses the Redis at url or, if that is empty, one within this process
// whose keys expire by the wall clock.
func startRedis(url string) (server, error) {
	if url != "" {
		namespace := "demo-" + rand.String(5) // so that runs on one Redis share no lock
		return server{url: url, what: "the Redis of REDIS_URL", namespace: namespace, close: func() {}}, nil
	}
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return server{}, fmt.Errorf("start the embedded Redis: %w", err)
	}
	return server{url: "redis://" + m.Addr(), what: "an embedded Redis", namespace: "demo", close: m.Close}, nil
}

// connect makes sure that the server answers.
func (s server) connect(ctx context.Context) (*redis.Client, error) {
	options, err := redis.ParseURL(s.url)
	if err != nil {
		return nil, errors.New("REDIS_URL must be like redis://127.0.0.1:6379 or unix:///run/redis.sock")
	}
	client := redis.NewClient(options)
	if err := client.Ping(ctx).Err(); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("redis at %s: %w", options.Addr, err)
	}
	return client, nil
}

// writeSecret writes into dir what the Secret of a namespace would hold: the
// address without credentials, and these in files of their own.
func (s server) writeSecret(dir string) error {
	address, err := url.Parse(s.url)
	if err != nil {
		return errors.New("REDIS_URL is not a URL")
	}
	password, _ := address.User.Password()
	files := map[string]string{"username": address.User.Username(), "password": password}
	address.User = nil
	files["url"] = address.String()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if content == "" {
			continue // a key that the Secret would not have
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}
