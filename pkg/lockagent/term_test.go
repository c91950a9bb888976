package lockagent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// What is left of a hold after TERM.
const (
	freed = 0
	short = 9500 * time.Millisecond // margin + 3 s
	whole = 30 * time.Second        // since its last renewal
)

// k8s-await-election#25: TERM did not release. consul#1210, #797: it did, but
// the app ran on. So: at once when the app has ended, else soon, and before that
// the next agent can take over or stop the app.
func TestCaseB05B08Term(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	tests := map[string]struct {
		outside bool
		held    time.Duration                 // before the hook
		probe   func(p *pod, d time.Duration) // while held
		noHook  bool
		hook    time.Duration // before TERM
		grace   time.Duration

		wantExit int
		wantLeft time.Duration
	}{
		"outside a pod":                   {outside: true, held: time.Minute, noHook: true, wantExit: 0, wantLeft: freed},
		"the Job's app has ended":         {held: time.Minute, probe: probed, hook: 10 * ms, wantExit: 87, wantLeft: freed},
		"a deleted pod's app has ended":   {held: time.Minute, probe: probed, hook: 5120 * ms, wantExit: 87, wantLeft: freed},
		"no probes at all":                {held: time.Minute, hook: 10 * ms, wantExit: 87, wantLeft: freed},
		"held for a moment":               {held: 0, hook: 10 * ms, wantExit: 87, wantLeft: freed},
		"held for less than three probes": {held: 5900 * ms, probe: probedOnceOnly, hook: 10 * ms, wantExit: 87, wantLeft: freed},

		"TERM without hook":          {held: time.Minute, probe: probed, noHook: true, wantExit: 87, wantLeft: short},
		"probes stopped being asked": {held: time.Minute, probe: probedOnceOnly, hook: 10 * ms, wantExit: 87, wantLeft: short},
		"stood still just before":    {held: time.Minute, probe: stoodStill, hook: 10 * ms, wantExit: 87, wantLeft: short},
		"grace period of the pod":    {held: time.Minute, probe: probed, hook: 30 * second, wantExit: 87, wantLeft: short},
		"just before the pod's":      {held: time.Minute, probe: probed, hook: 29750 * ms, wantExit: 87, wantLeft: short},
		"after the pod's":            {held: time.Minute, probe: probed, hook: 34300 * ms, wantExit: 87, wantLeft: short},
		"grace period of its own":    {held: time.Minute, probe: probed, hook: 10*second + 40*ms, wantExit: 87, wantLeft: short},
		"a longer one in the pod":    {held: time.Minute, probe: probed, hook: 40300 * ms, grace: time.Hour, wantExit: 87, wantLeft: freed},
		"the end of a longer one":    {held: time.Minute, probe: probed, hook: 10 * time.Minute, grace: 10 * time.Minute, wantExit: 87, wantLeft: short},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPod(t, memstore.NewServer(), func(c *agentenv.Config) {
					if tc.outside {
						outside(c)
					}
					if tc.grace > 0 {
						c.GracePeriod = tc.grace
					}
				}).init().start()
				if tc.probe != nil {
					tc.probe(p, tc.held)
				} else {
					sleep(tc.held)
				}
				if !tc.noHook {
					p.prestop()
				}
				sleep(tc.hook)
				p.wantHeld(true)
				p.term()
				p.wantExit(tc.wantExit, 0)
				p.wantLeft(tc.wantLeft)
			})
		})
	}
}

func probed(p *pod, d time.Duration) {
	for ; d > 0; d -= 2 * time.Second {
		if err := p.agent.Live(); err != nil {
			p.t.Error(err)
		}
		sleep(2 * time.Second)
	}
}

func probedOnceOnly(p *pod, d time.Duration) {
	probed(p, 1)
	sleep(d - 2*time.Second)
}

func stoodStill(p *pod, d time.Duration) {
	probed(p, d-2*time.Second)
	p.machine.suspend(1100 * time.Millisecond)
	sleep(time.Second)
	probed(p, 1)
}

// wantLeft sees how long the hold lives on, and how that is on record.
func (p *pod) wantLeft(left time.Duration) {
	p.t.Helper()
	rec := p.record()
	if left == freed {
		if got := p.server.Holders(); len(got) != 0 {
			p.t.Errorf("holders = %v, want none\n%s", got, p.log)
		}
		if strings.Contains(rec, "owner") {
			p.t.Errorf("record = %s, want none of the hold", rec)
		}
		return
	}
	if !strings.Contains(rec, `"owner"`) || !strings.Contains(rec, `"token":1`) || strings.Contains(rec, `"lost"`) {
		p.t.Errorf("record = %s, want the hold", rec)
	}
	sleep(left - time.Millisecond)
	if got := p.server.Holders(); len(got) != 1 {
		p.t.Errorf("the hold ended before %s\n%s", left, p.log)
	}
	sleep(2 * time.Millisecond)
	if got := p.server.Holders(); len(got) != 0 {
		p.t.Errorf("the hold did not end after %s\n%s", left, p.log)
	}
}

// In doubt, whichever way it was, there is never a second holder beside the app:
// the next agent keeps the hold, or has time to stop the app.
func TestCaseB08NextAgentAfterTermInDoubt(t *testing.T) {
	tests := map[string]struct {
		back     time.Duration // of the next agent, after the end
		newEpoch bool
		want     string
	}{
		"the agent alone, at once":         {back: 0, want: keeps},
		"the agent alone, soon":            {back: 2900 * time.Millisecond, want: keeps},
		"the agent alone, too late":        {back: 3 * time.Second, want: ends},
		"the pod restarted in place":       {back: 2900 * time.Millisecond, newEpoch: true, want: keeps},
		"the pod restarted in place, late": {back: 3 * time.Second, newEpoch: true, want: anew},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPod(t, memstore.NewServer()).init().start()
				p.term()
				p.wantExit(lockagent.ExitLost, 0)
				sleep(tc.back)
				owners := p.server.Holders()
				p = p.killed()
				if tc.newEpoch {
					p.init()
				}
				p.start()
				if tc.want == ends {
					p.wantExit(lockagent.ExitLost, 0)
					if diff := cmp.Diff(owners, p.server.Holders()); diff != "" {
						t.Errorf("the lock is free while the app still runs (-want +got):\n%s", diff)
					}
					return
				}
				p.wantPhase(lockagent.Holding)
				if kept := cmp.Equal(owners, p.server.Holders()); kept != (tc.want == keeps) {
					t.Errorf("owner kept = %t, want it %s", kept, tc.want)
				}
			})
		})
	}
}

// After a recent takeover the kubelet pauses for longer than a hold cut short
// would live.
func TestTermInDoubtAfterATakeoverLeavesTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start().killed().start()
		p.wantPhase(lockagent.Holding)
		p.term()
		p.wantExit(lockagent.ExitLost, 0)
		p.wantLeft(whole)
	})
}

func TestTermWhileWaitingLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", time.Hour)
		p := newPod(t, server).init().start()
		if got := len(server.Queue()); got != 1 {
			t.Fatalf("in the queue = %d, want 1", got)
		}
		p.term()
		p.wantExit(lockagent.ExitOK, 0)
		if diff := cmp.Diff([]string(nil), server.Queue()); diff != "" {
			t.Errorf("queue (-want +got):\n%s", diff)
		}
		if rec := p.record(); strings.Contains(rec, "owner") {
			t.Errorf("record = %s, want it empty", rec)
		}
	})
}

// A grant that is on its way at TERM would block the lock for a whole TTL.
func TestTermWhileAGrantIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init()
		p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			if c.Op == "acquire" { // slow to get there, so that a release would overtake it
				time.Sleep(500 * time.Millisecond)
			}
			do()
			return nil
		})
		p.start()
		sleep(100 * time.Millisecond)
		p.term()
		p.wantExit(lockagent.ExitOK, 400*time.Millisecond)
		sleep(time.Second)
		if got := p.server.Holders(); len(got) != 0 {
			t.Errorf("holders = %v, want none", got)
		}
	})
}

// TERM ends the process within two seconds although the store hangs.
func TestTermWithASilentStore(t *testing.T) {
	tests := map[string]struct {
		phase    lockagent.Phase
		before   func(*pod)
		wantExit int
		wantLog  string
	}{
		"waiting": {
			phase: lockagent.Waiting, wantExit: lockagent.ExitOK, wantLog: "it frees itself by=2000-01-01 00:00:31.8 ",
			before: func(p *pod) { other(p.t, p.server, "other", time.Hour) },
		},
		"holding outside a pod": {
			phase: lockagent.Holding, wantExit: lockagent.ExitLost, wantLog: "it frees itself by=2000-01-01 00:00:30 ",
			before: func(p *pod) { outside(&p.cfg) },
		},
		"holding, in doubt": {
			phase: lockagent.Holding, wantExit: lockagent.ExitLost, wantLog: "it frees itself by=2000-01-01 00:00:30 ",
			before: func(*pod) {},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPod(t, memstore.NewServer()).init()
				tc.before(p)
				p.start()
				p.wantPhase(tc.phase)
				p.store.Intercept(func(ctx context.Context, _ memstore.Call, _ func()) error {
					time.Sleep(time.Minute) // whatever its context says
					return ctx.Err()
				})
				sleep(time.Second)
				p.term()
				p.wantExit(tc.wantExit, 1500*time.Millisecond)
				if !strings.Contains(p.log.String(), tc.wantLog) {
					t.Errorf("log has no %q:\n%s", tc.wantLog, p.log)
				}
				if rec := p.record(); !strings.Contains(rec, "owner") {
					t.Errorf("record = %s, want the owner: nothing is known to be given back", rec)
				}
				time.Sleep(2 * time.Minute) // for what hangs
			})
		})
	}
}

// A hold that is cut short is on record as such before the store is asked: the
// answer may be lost with the process.
func TestShorterHoldIsOnRecordFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start()
		p.store.Intercept(memstore.Deaf)
		p.term()
		asked := time.Now()
		p.wantExit(lockagent.ExitLost, 1500*time.Millisecond)
		sleep(3*time.Second - time.Since(asked)) // 9.5 s - margin
		p = p.killed().start()
		p.wantExit(lockagent.ExitLost, 0)
		if !strings.Contains(p.log.String(), "reason=expired") {
			t.Errorf("the next agent believes in the old deadline:\n%s", p.log)
		}
	})
}

func TestTermAfterTheEndOfTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start()
		p.store.Intercept(memstore.Refuse)
		p.machine.suspend(time.Hour) // the loop has not looked yet
		p.term()
		p.wantExit(lockagent.ExitLost, 0)
		if got := p.state().LastLoss; got == nil {
			t.Error("no loss, want one: TERM came after the hold had ended")
		}
	})
}

func (p *pod) record() string {
	p.t.Helper()
	return p.read(p.cfg.StateDir, "record.json")
}

func TestReleaseGoesOnUntilConfirmed(t *testing.T) {
	tests := map[string]struct {
		silent   time.Duration
		wantErr  string
		wantLeft int
	}{
		"the store comes back":    {silent: 12 * time.Second, wantLeft: 0},
		"the hold ends by itself": {silent: time.Hour, wantErr: `release "orders/etl": the store did not answer until the hold ended by itself`, wantLeft: 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPod(t, memstore.NewServer()).init().start()
				p.store.Intercept(memstore.Silent)
				done := make(chan error, 1)
				go func() { done <- p.agent.Release(t.Context()) }()
				synctest.Wait()
				p.wantPhase(lockagent.Released)
				p.wantHeld(false) // at once: the store may have done it
				sleep(tc.silent)
				p.store.Intercept(nil)
				got := ""
				if err := <-done; err != nil {
					got = err.Error()
				}
				if got != tc.wantErr {
					t.Errorf("release = %q, want %q", got, tc.wantErr)
				}
				if got := p.server.Holders(); len(got) != tc.wantLeft {
					t.Errorf("holders = %v, want %d", got, tc.wantLeft)
				}
				p.term()
				p.wantExit(lockagent.ExitOK, 0)
			})
		})
	}
}

func TestReleaseWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", time.Hour)
		p := newPod(t, server).init().start()
		if got := fmt.Sprint(p.agent.Release(t.Context())); got != "not holding the lock" {
			t.Errorf("release while waiting = %s", got)
		}
		p.wantPhase(lockagent.Waiting)
	})
}
