package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const lossNote = `Loss: real holdfast-agent processes (on-lost: notify, margin ttl/5), each behind a proxy of its own that passes the reply to the first
renewal and then nothing more on any connection, while all stay open. The clock starts when the proxy got that renewal, and stops when both
GET /v1/held's state and the file "held" say that the lock is not held. Greatest of all runs. No peer here tells its holder at all.`

// lossTTL is the shortest that a pod may have with on-lost: notify.
const lossTTL = 5 * time.Second

// measureLoss fills in loss_told_ttls, one round a run. All runs go on at the
// same time.
func measureLoss(ctx context.Context, e *bench) error {
	program, err := e.agentProgram(ctx)
	if err != nil {
		return err
	}
	told := make([]float64, e.lossRuns)
	failed := make([]error, e.lossRuns)
	var all sync.WaitGroup
	for i := range e.lossRuns {
		all.Go(func() { told[i], failed[i] = e.lose(ctx, program) })
	}
	all.Wait()
	for i, ttls := range told {
		e.results.add("loss_told_ttls", ours.name, fmt.Sprintf("TTL %s", lossTTL), i+1, ttls)
	}
	return errors.Join(failed...)
}

// lose lets one agent hold, cuts it off right after its first renewal, and
// returns how many TTLs later it said so.
func (e *bench) lose(ctx context.Context, program string) (float64, error) {
	renewed := make(chan time.Time, 1)
	var scripts atomic.Int32
	p, err := startProxy(e.redis.addr, func(x exchange) verdict {
		if !x.ranScript() || scripts.Add(1) != 2 { // the first one acquires
			return pass
		}
		renewed <- x.asked
		return silence
	})
	if err != nil {
		return 0, err
	}
	defer p.close()
	a, err := startAgent(program, e.folder, p.url(), lockName("loss"), lossTTL, nil)
	if err != nil {
		return 0, err
	}
	defer a.stop()
	if _, err := a.await(ctx, true); err != nil {
		return 0, err
	}
	var asked time.Time
	select {
	case asked = <-renewed:
	case <-time.After(lossTTL):
		return 0, fmt.Errorf("agent of %s did not renew within its TTL%s", a.cfg.Resource, a.logged())
	}
	if _, err := a.await(ctx, false); err != nil {
		return 0, err
	}
	for {
		if _, err := os.Stat(filepath.Join(a.cfg.Dir, "held")); errors.Is(err, fs.ErrNotExist) {
			return time.Since(asked).Seconds() / lossTTL.Seconds(), nil
		}
		if time.Since(asked) > 2*lossTTL {
			return 0, fmt.Errorf("agent of %s still has its file \"held\" after two TTLs%s", a.cfg.Resource, a.logged())
		}
		time.Sleep(time.Millisecond)
	}
}

func lossRows(r *results) []row {
	setting := fmt.Sprintf("TTL %s", lossTTL)
	values := r.series("loss_told_ttls", ours.name, setting)
	return []row{{
		name: fmt.Sprintf("loss told after the last renewal was sent, worst of %d", len(values)), unit: "TTL",
		ours: values, summary: worst, aim: valueAtMost(0.9),
	}}
}
