package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// goRuntime is how an agent in a pod runs: the webhook sets GOMAXPROCS, and the
// agent GOGC.
var goRuntime = []string{"GOGC=25", "GOMAXPROCS=1"}

// cost is one program whose weight shows what a part costs.
type cost struct {
	name        string
	program     string                // folder below cost; empty is holdfast-agent
	redis       func(c *costs) string // address of the Redis to talk to; nil for none
	how         []string              // further arguments
	environment []string
}

// costList is in the order of the page: each line adds to the one above, or
// stands for it if its name starts with "instead".
var costList = []cost{
	{name: "a Go program that waits", program: "bare"},
	{name: "with net/http", program: "http"},
	{name: "and VictoriaMetrics/metrics", program: "metrics"},
	{name: "instead: prometheus/client_golang", program: "prometheus"},
	{name: "and go-redis, default buffers", program: "redis", redis: (*costs).plain},
	{name: "instead: go-redis, small buffers", program: "redis", redis: (*costs).plain, how: []string{"small"}},
	{name: "and TLS to Redis", program: "redis", redis: (*costs).tls, how: []string{"small", "insecure"}},
	{name: "**holdfast-agent**"},
	{name: "holdfast-agent with GOGC=100", environment: []string{"GOGC=100"}},
	{name: "holdfast-agent with GOGC=100 and GOMAXPROCS=2", environment: []string{"GOGC=100", "GOMAXPROCS=2"}},
	{name: "holdfast-agent with GOMAXPROCS=64", environment: []string{"GOMAXPROCS=64"}},
	{name: "holdfast-agent with GOMEMLIMIT=4MiB", environment: []string{"GOMEMLIMIT=4MiB"}},
}

// costs is what all programs share while they are weighed.
type costs struct {
	*bench
	tlsURL string
}

func (c *costs) plain() string { return c.redis.url() }
func (c *costs) tls() string   { return c.tlsURL }

// measureCosts fills in what costCells shows. All programs run at the same
// time: their memory does not depend on it, and their processor time is counted.
func measureCosts(ctx context.Context, e *bench) error {
	front, err := startTLSFront(e.redis.addr)
	if err != nil {
		return err
	}
	defer func() { _ = front.Close() }()
	shared := &costs{e, "rediss://" + front.Addr().String()}
	programs := map[string]string{}
	for _, c := range costList {
		if programs[c.program], err = e.buildCost(ctx, c.program); err != nil {
			return err
		}
	}
	weights := make([]weight, len(costList))
	failed := make([]error, len(costList))
	var all sync.WaitGroup
	for i, c := range costList {
		all.Go(func() { weights[i], failed[i] = shared.weigh(ctx, c, programs[c.program]) })
	}
	all.Wait()
	for i, c := range costList {
		size, err := megabytes(programs[c.program])
		if err != nil {
			return err
		}
		e.results.add("cost_binary_mb", ours.name, c.name, 1, size)
		weights[i].add(&e.results, c.name)
	}
	return errors.Join(failed...)
}

func (w weight) add(r *results, setting string) {
	r.add("cost_rest_rss_mb", ours.name, setting, 1, w.rest.rss)
	r.add("cost_rest_anonymous_mb", ours.name, setting, 1, w.rest.anonymous)
	if w.loaded.rss == 0 {
		return // it has no HTTP server to be loaded through
	}
	r.add("cost_loaded_anonymous_mb", ours.name, setting, 1, w.loaded.anonymous)
	r.add("cost_cpu_seconds", ours.name, setting, 1, w.cpu.Seconds())
}

// buildCost builds a program of the folder cost as the agent is built.
func (e *bench) buildCost(ctx context.Context, name string) (string, error) {
	if name == "" {
		return e.agentProgram(ctx)
	}
	program := filepath.Join(e.folder, "cost-"+name)
	return program, build(ctx, ".", "./cost/"+name, program)
}

func (c *costs) weigh(ctx context.Context, what cost, program string) (weight, error) {
	if what.program == "" {
		return c.weighAgent(ctx, program, what.environment)
	}
	port, err := freePort()
	if err != nil {
		return weight{}, err
	}
	args := []string{"127.0.0.1:" + port}
	if what.redis != nil {
		args = append(args, what.redis(c))
	}
	cmd := exec.Command(program, append(args, what.how...)...)
	cmd.Env = goRuntime
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return weight{}, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	url := "http://127.0.0.1:" + port + "/"
	if what.program == "bare" {
		url = ""
	}
	w, err := weigh(cmd.Process.Pid, url, c.restFor)
	if err != nil {
		err = fmt.Errorf("weigh %q: %w", what.name, err)
	}
	return w, err
}

var costHeader = []string{"program", "binary, MB", "RSS at rest, MB", "anonymous at rest, MB", "anonymous after load, MB", "CPU of the load, s"}

func costCells(r *results) [][]string {
	var out [][]string
	for _, setting := range r.settings("cost_binary_mb") {
		cells := []string{setting}
		for _, metric := range []string{"cost_binary_mb", "cost_rest_rss_mb", "cost_rest_anonymous_mb", "cost_loaded_anonymous_mb", "cost_cpu_seconds"} {
			cells = append(cells, formatValue(median(r.series(metric, ours.name, setting))))
		}
		out = append(out, cells)
	}
	return out
}
