package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const lostReplyNote = `Lost reply: as above, but the proxy loses the reply to the acquire that Redis has executed, and hangs that connection. Counted from
there until the agent holds, in read time-outs of ttl/6, the longest that a call may wait. The agent must then have the token that was given
out by the lost reply; a run with another one fails the benchmark. The aim is one time-out; 5 % are for the retry itself.`

// lostReplyTTL keeps a read time-out well above what starting a process takes.
const lostReplyTTL = 30 * time.Second

// measureLostReply fills in lost_reply_timeouts, one round a run. All runs go
// on at the same time.
func measureLostReply(ctx context.Context, e *bench) error {
	program, err := e.agentProgram(ctx)
	if err != nil {
		return err
	}
	// Loads the script, so that no first acquire is refused for want of it.
	if err := e.holdOnce(ctx, program); err != nil {
		return err
	}
	took := make([]float64, e.lossRuns)
	failed := make([]error, e.lossRuns)
	var all sync.WaitGroup
	for i := range e.lossRuns {
		all.Go(func() { took[i], failed[i] = e.loseReply(ctx, program) })
	}
	all.Wait()
	for i, timeouts := range took {
		e.results.add("lost_reply_timeouts", ours.name, fmt.Sprintf("TTL %s", lostReplyTTL), i+1, timeouts)
	}
	return errors.Join(failed...)
}

func (e *bench) holdOnce(ctx context.Context, program string) error {
	a, err := startAgent(program, e.folder, e.redis.url(), lockName("lost-reply"), lostReplyTTL, nil)
	if err != nil {
		return err
	}
	defer a.stop()
	_, err = a.await(ctx, true)
	return err
}

// loseReply returns how many read time-outs after its loss the agent holds in
// spite of it.
func (e *bench) loseReply(ctx context.Context, program string) (float64, error) {
	lost := make(chan time.Time, 1)
	p, err := startProxy(e.redis.addr, func(x exchange) verdict {
		if !x.ranScript() || len(lost) > 0 {
			return pass
		}
		lost <- time.Now()
		return hang
	})
	if err != nil {
		return 0, err
	}
	defer p.close()
	a, err := startAgent(program, e.folder, p.url(), lockName("lost-reply"), lostReplyTTL, nil)
	if err != nil {
		return 0, err
	}
	defer a.stop()
	st, err := a.await(ctx, true)
	if err != nil {
		return 0, err
	}
	held := time.Now()
	grant, err := e.redis.admin.Get(ctx, "lock:{"+a.cfg.Resource+"}:fence").Result()
	if err != nil {
		return 0, err
	}
	if len(lost) == 0 || !strings.HasPrefix(grant, fmt.Sprint(st.Token, " ")) {
		return 0, fmt.Errorf("agent of %s holds with token %d; the last grant is %q, by a reply lost: %t", a.cfg.Resource, st.Token, grant, len(lost) > 0)
	}
	return held.Sub(<-lost).Seconds() / (lostReplyTTL.Seconds() / 6), nil
}

func lostReplyRows(r *results) []row {
	values := r.series("lost_reply_timeouts", ours.name, fmt.Sprintf("TTL %s", lostReplyTTL))
	return []row{{
		name: fmt.Sprintf("held after a lost acquire reply, same token, worst of %d", len(values)), unit: "read time-outs",
		ours: values, summary: worst, aim: valueAtMost(1.05),
	}}
}
