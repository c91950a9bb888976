package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// run holds the lock until TERM or INT. A second signal changes nothing: giving
// the lock back is bounded anyhow, and cutting it short would cost the next
// waiter a whole TTL.
func run(p program) int {
	stayLean()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	cfg, err := configure(p.lookup)
	out := newLogWriter(p.stderr)
	defer out.Close()
	log := slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: cfg.LogLevel}))
	if err != nil {
		return p.refuse(ctx, cfg, log, err)
	}
	makeFolders(cfg, log)
	doors, err := lockagent.Listen(cfg)
	if err != nil {
		return p.refuse(ctx, cfg, log, err)
	}
	store, err := openStore(cfg)
	if err != nil {
		doors.Close()
		return p.refuse(ctx, cfg, log, err)
	}
	agent := lockagent.New(cfg, store, lockagent.Options{Log: log, Version: versionText(), Exit: func(code int) {
		out.Close()
		os.Exit(code)
	}})
	closeDoors := lockagent.Serve(doors, agent, log)
	code := agent.Run(ctx)
	closeDoors()
	log.Info("holdfast-agent ends", "exit", code)
	return code // the store's connections end with the process, which waits for no server
}

// makeFolders is for an agent outside a pod; in one the folders are volumes. One
// that cannot be made shows where it is used, with the path.
func makeFolders(cfg agentenv.Config, log *slog.Logger) {
	for dir, mode := range map[string]os.FileMode{cfg.Dir: 0o755, cfg.StateDir: 0o700} {
		if err := os.MkdirAll(dir, mode); err != nil {
			log.Warn("no folder", "error", err)
		}
	}
}

// refuse tells of each error, and rests where a kubelet would restart a program
// that ends at once in a hot loop. Not so beside an app that an earlier process
// has held the lock for: it has to be stopped before that hold ends.
func (p program) refuse(ctx context.Context, cfg agentenv.Config, log *slog.Logger, err error) int {
	for _, e := range each(err) {
		var bad *agentenv.VarError
		if errors.As(e, &bad) {
			log.Error("bad configuration", "variable", bad.Name, "error", e)
		} else {
			log.Error("cannot start", "error", e)
		}
	}
	// Nobody renews what an earlier process held.
	if err := lockagent.RemoveHeld(cfg.Dir); err != nil {
		log.Error("the app may believe that it holds the lock", "error", err)
	}
	if cfg.InPod() && !lockagent.AppMayRun(cfg.StateDir) {
		rest := time.NewTimer(p.errorRest)
		defer rest.Stop()
		select {
		case <-rest.C:
		case <-ctx.Done():
		}
	}
	return lockagent.ExitConfig
}

// each takes apart what errors.Join has joined.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
