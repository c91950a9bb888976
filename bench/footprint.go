package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

const footprintNote = `Footprint: a real holdfast-agent, built as it is released (CGO_ENABLED=0, -trimpath, -ldflags "-s -w", -tags nethttpomithttp2), holding, with
the app's API and the probes on TCP. At rest is 12 seconds after it holds; after load is 12 seconds after 20,000 GET /v1/held over four
connections. MB are 10^6 bytes. RSS contains pages of the program's file, which all agents of a node share; the anonymous part is each one's own.
The peak is the most RSS (VmHWM) of an agent that waits, is asked for its state 20,000 times and for its metrics as often, four at a time; the
injected container may use 32 MiB, 33.6 MB.`

// measureFootprint fills in binary_mb, and rss_mb and anonymous_mb at rest and
// after load, one round an agent. All agents run at the same time. The one that
// waits, for peak_mb, comes after them.
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
	peak, err := e.weighWaiter(ctx, program)
	if err != nil {
		return err
	}
	e.results.add("peak_mb", ours.name, "waiting", 1, peak)
	return errors.Join(failed...)
}

// weighAgent weighs an agent that holds, with these variables in addition.
func (e *bench) weighAgent(ctx context.Context, program string, environment []string) (weight, error) {
	a, url, err := e.startOpen(program, lockName("footprint"), environment)
	if err != nil {
		return weight{}, err
	}
	defer a.stop()
	if _, err := a.await(ctx, true); err != nil {
		return weight{}, err
	}
	a.client.CloseIdleConnections()
	return weigh(a.cmd.Process.Pid, url+"/v1/held", e.restFor)
}

// weighWaiter is the most memory that an agent has had which waits for a lock,
// bears the load, and is scraped; in MB of RSS.
func (e *bench) weighWaiter(ctx context.Context, program string) (float64, error) {
	lock := lockName("footprint-waiting")
	holder, _, err := e.startOpen(program, lock, nil)
	if err != nil {
		return 0, err
	}
	defer holder.stop()
	if _, err := holder.await(ctx, true); err != nil {
		return 0, err
	}
	waiter, url, err := e.startOpen(program, lock, nil)
	if err != nil {
		return 0, err
	}
	defer waiter.stop()
	if err := e.redis.awaitQueue(ctx, lock, 1); err != nil {
		return 0, err
	}
	for _, path := range []string{"/v1/state", "/metrics"} {
		if err := burst(url + path); err != nil {
			return 0, err
		}
	}
	return readPeak(waiter.cmd.Process.Pid)
}

// startOpen starts an agent whose API and probes are on TCP as in a pod. The URL
// is the API's.
func (e *bench) startOpen(program, lock string, environment []string) (*agent, string, error) {
	api, err := freePort()
	if err != nil {
		return nil, "", err
	}
	probes, err := freePort()
	if err != nil {
		return nil, "", err
	}
	a, err := startAgent(program, e.folder, e.redis.url(), lock, 30*time.Second, func(a *agent) {
		a.cfg.Listen, a.cfg.ProbeListen = "localhost:"+api, ":"+probes
		a.environment = environment
	})
	return a, "http://127.0.0.1:" + api, err
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
		size("agent waiting, under load and scraped, peak", "peak_mb", "waiting", valueAtMost(16)),
		size("agent binary", "binary_mb", "released", valueAtMost(9)),
	}
}
