package lockagent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

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
		"the pod restarted in place":       {back: 9400 * time.Millisecond, newEpoch: true, want: keeps},
		"the pod restarted in place, late": {back: 9500 * time.Millisecond, newEpoch: true, want: anew},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
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

// An answer that was given up on is not taken for the one that is awaited.
func TestTermIgnoresLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init()
		p.store.Intercept(func(_ context.Context, c memstore.Call, do func()) error {
			switch c.Op {
			case "acquire":
				time.Sleep(900 * time.Millisecond) // longer than it is waited for
			case "release":
				time.Sleep(500 * time.Millisecond)
				return errors.New("connection reset by peer")
			}
			do()
			return nil
		})
		p.start()
		p.term()
		p.wantExit(lockagent.ExitOK, 1200*time.Millisecond)
		if rec := p.record(); !strings.Contains(rec, "owner") {
			t.Errorf("record = %s, want the owner: the lock was granted, and not given back", rec)
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
		bubble(t, name, func(t *testing.T) {
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
	}
}

// While it adopts, the agent waits, but the store may still have a hold of it.
func TestTermWhileAdoptingWithASilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start().killed().init()
		p.store.Intercept(memstore.Silent)
		p.start()
		p.wantPhase(lockagent.Waiting)
		p.term()
		p.wantExit(lockagent.ExitLost, 1500*time.Millisecond)
	})
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
