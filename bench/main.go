// Command bench measures what Holdfast promises about speed and size against
// one real Redis of its own, next to go-redsync and bsm/redislock in the same
// run, and says which aims were reached. See docs/benchmarks.md.
//
// Absolute numbers depend on the machine; read the ratios.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// bench is one run: its Redis, how long things take, and what was measured.
type bench struct {
	redis   *redisServer
	folder  string // temporary; for the agents and their program
	program string // holdfast-agent, once it is built
	results results

	redisVersion string
	loadBefore   string // the machine's load average; above zero, others were at work

	rounds   int           // of every figure that alternates
	handoffs int           // timed in a round of one contender
	lockFor  time.Duration // of a round of one contender, uncontended; such rounds are shorter and more
	idleTTL  time.Duration
	lossRuns int
	restFor  time.Duration // before memory is read; the agent tidies up every five seconds
}

// figure is one part of the report.
type figure struct {
	name    string // for -only
	measure func(context.Context, *bench) error
	rows    func(*results) []row // nil for what has a page of its own
	note    string               // how it was measured
}

var figures = []figure{
	{"handoff", measureHandoffs, handoffRows, handoffNote},
	{"idle", measureIdle, idleRows, idleNote},
	{"uncontended", measureUncontended, uncontendedRows, uncontendedNote},
	{"loss", measureLoss, lossRows, lossNote},
	{"lostreply", measureLostReply, lostReplyRows, lostReplyNote},
	{"footprint", measureFootprint, footprintRows, footprintNote},
	{"cost", measureCosts, nil, ""},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "one short round of everything: shows that it works, not how fast")
	only := flags.String("only", "", "comma-separated `figures` instead of all: "+strings.Join(names(figures), ", "))
	write := flags.Bool("write", false, "write docs/benchmarks.md, docs/footprint.md and docs/benchmarks.csv")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	e := &bench{rounds: 5, handoffs: 200, lockFor: 500 * time.Millisecond, idleTTL: 30 * time.Second, lossRuns: 20, restFor: 12 * time.Second}
	if *quick {
		e = &bench{rounds: 1, handoffs: 60, lockFor: 300 * time.Millisecond, idleTTL: 6 * time.Second, lossRuns: 4, restFor: 6 * time.Second}
	}
	if err := e.run(ctx, chosen); err != nil {
		return err
	}
	report := newReport(e, chosen)
	fmt.Print(report.text())
	if *write {
		return report.write("../docs")
	}
	return nil
}

func names(figures []figure) []string {
	out := make([]string, len(figures))
	for i, f := range figures {
		out[i] = f.name
	}
	return out
}

// choose finds the figures named in a comma-separated list; all for none.
func choose(only string) ([]figure, error) {
	if only == "" {
		return figures, nil
	}
	var chosen []figure
	for name := range strings.SplitSeq(only, ",") {
		i := slices.Index(names(figures), name)
		if i < 0 {
			return nil, fmt.Errorf("-only %q: must be among %s", name, strings.Join(names(figures), ", "))
		}
		chosen = append(chosen, figures[i])
	}
	return chosen, nil
}

// run measures the figures, one after the other, against a fresh Redis.
func (e *bench) run(ctx context.Context, chosen []figure) (err error) {
	if e.folder, err = os.MkdirTemp("", "holdfast-bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(e.folder) }()
	if e.redis, err = startRedis(ctx); err != nil {
		return err
	}
	defer e.redis.stop()
	e.redisVersion, e.loadBefore = e.redis.version(ctx), loadAverage()
	for _, f := range chosen {
		start := time.Now()
		if err := f.measure(ctx, e); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: measured in %s\n", f.name, time.Since(start).Round(time.Second))
	}
	return nil
}

// agentProgram builds holdfast-agent when it is first asked for.
func (e *bench) agentProgram(ctx context.Context) (string, error) {
	if e.program != "" {
		return e.program, nil
	}
	program, err := buildAgent(ctx, e.folder)
	e.program = program
	return program, err
}

// loadAverage is the machine's over the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	minute, _, _ := strings.Cut(string(text), " ")
	return minute
}
