package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

const footprintNote = `Footprint: a real holdfast-agent, built as it is released (CGO_ENABLED=0, -trimpath, -ldflags "-s -w", -tags nethttpomithttp2), holding, with
the app's API and the probes on TCP. At rest is 12 seconds after it holds; after load is 12 seconds after 20,000 GET /v1/held over four
connections. MB are 10^6 bytes. RSS contains pages of the program's file, which all agents of a node share; the anonymous part is each one's own.`

// measureFootprint fills in binary_mb, and rss_mb and anonymous_mb at rest and
// after load, one round an agent. All agents run at the same time.
func measureFootprint(ctx context.Context, e *bench) error {
	program, err := e.agentProgram(ctx)
	if err != nil {
		return err
	}
	size, err := megabytes(program)
	if err != nil {
		return err
	}
	e.results.add("binary_mb", ours.name, "released", 1, size)
	weights := make([]weight, e.rounds)
	failed := make([]error, e.rounds)
	var all sync.WaitGroup
	for i := range e.rounds {
		all.Go(func() { weights[i], failed[i] = e.weighAgent(ctx, program, nil) })
	}
	all.Wait()
	for i, w := range weights {
		e.results.add("rss_mb", ours.name, "at rest", i+1, w.rest.rss)
		e.results.add("anonymous_mb", ours.name, "at rest", i+1, w.rest.anonymous)
		e.results.add("rss_mb", ours.name, "after load", i+1, w.loaded.rss)
		e.results.add("anonymous_mb", ours.name, "after load", i+1, w.loaded.anonymous)
	}
	return errors.Join(failed...)
}

// weighAgent weighs an agent that holds, with these variables in addition.
func (e *bench) weighAgent(ctx context.Context, program string, environment []string) (weight, error) {
	api, err := freePort()
	if err != nil {
		return weight{}, err
	}
	probes, err := freePort()
	if err != nil {
		return weight{}, err
	}
	a, err := startAgent(program, e.folder, e.redis.url(), lockName("footprint"), 30*time.Second, func(a *agent) {
		a.cfg.Listen, a.cfg.ProbeListen = "localhost:"+api, ":"+probes
		a.environment = environment
	})
	if err != nil {
		return weight{}, err
	}
	defer a.stop()
	if _, err := a.await(ctx, true); err != nil {
		return weight{}, err
	}
	a.client.CloseIdleConnections()
	return weigh(a.cmd.Process.Pid, "http://127.0.0.1:"+api+"/v1/held", e.restFor)
}

func footprintRows(r *results) []row {
	size := func(name, metric, setting string, a aim) row {
		return row{name: name, unit: "MB", ours: r.series(metric, ours.name, setting), aim: a}
	}
	return []row{
		size("agent at rest, RSS", "rss_mb", "at rest", valueAtMost(8)),
		size("agent at rest, anonymous part", "anonymous_mb", "at rest", valueAtMost(1.5)),
		size("agent after 20,000 requests, RSS", "rss_mb", "after load", aim{}),
		size("agent after 20,000 requests, anonymous part", "anonymous_mb", "after load", valueAtMost(3.2)),
		size("agent binary", "binary_mb", "released", valueAtMost(9)),
	}
}
