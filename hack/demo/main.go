// Demo shows Holdfast at work without a cluster: the real webhook and the real
// agent, a Redis within this program, and a few lines that do what a node does.
// It also judges what it sees, by the lives of the processes that it started
// itself, and fails if more of them ever ran at once than may.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// longest is how long it may take once everything is built.
const longest = 2 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	screen := newScreen(os.Stdout)
	err := run(ctx, screen, os.Getenv("REDIS_URL"))
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		screen.line("\nStopped before its end.")
		os.Exit(1)
	case err != nil:
		screen.line("\n%s %v", red.in("FAILED:"), err)
		os.Exit(1)
	}
}

// run plays the demo and judges it. Nothing of it is left when it returns.
func run(ctx context.Context, s *screen, redisURL string) (err error) {
	dir, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ps, err := newProcesses()
	if err != nil {
		return err
	}
	defer ps.killAll()
	redis, err := startRedis(redisURL)
	if err != nil {
		return err
	}
	defer redis.close()

	s.line("%s: no cluster, but the real webhook and the real agent, with %s.", bold.in("Holdfast demo"), redis.what)
	d, err := setUp(ctx, s, ps, redis, dir)
	if err != nil {
		return err
	}
	defer func() { d.witness.close(d.locks) }()
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("it took longer than %s", longest))
	defer cancel()
	return d.perform(ctx)
}
