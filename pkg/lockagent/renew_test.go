package lockagent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// consul#9788: an app ran on for 90 s after its lock was gone. Whatever the
// store does, a hold ends at deadline - margin: 30 s - 6.5 s after its last
// successful request was sent.
func TestCaseB06HoldEndsInTimeWhateverTheStoreDoes(t *testing.T) {
	const end = 23500 * time.Millisecond
	tests := map[string]func(ctx context.Context, c memstore.Call, do func()) error{
		"requests are refused":              memstore.Refuse,
		"requests end with their time-outs": memstore.Silent,
		"answers are lost":                  memstore.Deaf,
		"requests hang for ever, whatever their context": func(_ context.Context, _ memstore.Call, _ func()) error {
			time.Sleep(time.Hour)
			return nil
		},
		"answers take longer than the hold has": func(_ context.Context, _ memstore.Call, do func()) error {
			do()
			time.Sleep(end)
			return nil
		},
	}
	for name, fault := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer()).init().start()
			p.store.Intercept(fault)

			sleep(end - time.Nanosecond)
			p.wantPhase(lockagent.Degraded)
			p.wantHeld(true)

			time.Sleep(time.Nanosecond)
			if p.state().Held { // asked for before the loop can have acted
				t.Error("held at deadline - margin")
			}
			p.wantExit(lockagent.ExitLost, 0)
			p.wantPhase(lockagent.Lost)
			p.store.Intercept(nil)
			time.Sleep(2 * time.Hour) // for what hangs
		})
	}
}

// postgres-operator#1631: one missed renewal demoted the leader.
func TestCaseB13DegradedBeforeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start()
		p.store.Intercept(memstore.Refuse)
		sleep(9 * time.Second)
		p.wantPhase(lockagent.Holding)
		sleep(2 * time.Second)
		p.wantPhase(lockagent.Degraded)
		p.wantHeld(true)
		want := &lockagent.Problem{Code: lockagent.CodeUnreachable, Message: `renew "orders/etl": connection refused`}
		if diff := cmp.Diff(want, p.state().Error); diff != "" {
			t.Errorf("problem (-want +got):\n%s", diff)
		}

		sleep(10 * time.Second)
		p.store.Intercept(nil)
		sleep(2 * time.Second) // the longest pause between retries
		p.wantPhase(lockagent.Holding)
		p.wantHeld(true)
		if got := p.state(); got.Error != nil || got.Degraded || got.Token != 1 {
			t.Errorf("after the outage: problem %+v, degraded %t, token %d; want none, false, 1", got.Error, got.Degraded, got.Token)
		}
		p.wantMetric("holdfast_late_renewals_total", 1)
		p.wantMetric("holdfast_losses_total", 0)
		sleep(time.Hour)
		p.wantPhase(lockagent.Holding)
	})
}

// redisson#3636, #5697: renewals came 30 s late, and nobody knew.
func TestCaseB14OneRenewalEachThird(t *testing.T) {
	tests := map[string]struct {
		random float64
		every  time.Duration
	}{
		"earliest": {random: 0, every: 9 * time.Second},
		"middle":   {random: 0.5, every: 10 * time.Second},
		"latest":   {random: 0.999999999, every: 11 * time.Second},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer()).init()
			p.random = tc.random
			p.start()
			sleep(time.Hour)
			renewals := p.sent("renew")
			if len(renewals) < 300 {
				t.Fatalf("renewals in an hour = %d, want one each %s", len(renewals), tc.every)
			}
			for i := range renewals[1:] {
				if got := renewals[i+1].Sub(renewals[i]); got.Round(time.Millisecond) != tc.every {
					t.Fatalf("renewal %d came after %s, want %s", i+1, got, tc.every)
				}
			}
			if got, want := len(p.store.Calls())-len(renewals), 2; got != want {
				t.Errorf("other requests of a holder = %d, want %d: listen, acquire", got, want)
			}
			p.wantMetric("holdfast_late_renewals_total", 0)
		})
	}
}

// kubernetes#23731: the lease was lost and nobody was told. A suspended machine
// stops Go's timers, not the lease.
func TestCaseB11SuspendedPastTheDeadline(t *testing.T) {
	tests := map[string]struct {
		slept    time.Duration
		wantHeld bool
	}{
		"just short of the end": {slept: 23500*time.Millisecond - time.Nanosecond, wantHeld: true},
		"to the end":            {slept: 23500 * time.Millisecond, wantHeld: false},
		"for a night":           {slept: 8 * time.Hour, wantHeld: false},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer()).init().start()
			p.machine.suspend(tc.slept)
			if got := p.state().Held; got != tc.wantHeld {
				t.Errorf("held on waking = %t, want %t", got, tc.wantHeld)
			}
			if tc.wantHeld {
				p.store.Intercept(memstore.Silent)
			}
			p.wantExit(lockagent.ExitLost, 500*time.Millisecond)
		})
	}
}

func TestSuspendedAndBackInTimeRenewsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start()
		p.machine.suspend(20 * time.Second)
		sleep(500 * time.Millisecond)
		if got := p.calls("renew"); got != 1 {
			t.Errorf("renewals half a second after waking = %d, want 1", got)
		}
		p.wantPhase(lockagent.Holding)
		p.wantHeld(true)
		p.wantMetric("holdfast_late_renewals_total", 1)
	})
}

// The deadline counts from before the request: an answer that took 4 s to come
// is worth 4 s less.
func TestDeadlineCountsFromBeforeTheRequest(t *testing.T) {
	tests := map[string]struct {
		holding bool          // when answers become slow
		answer  time.Duration // to the last request that is answered
	}{
		"acquire": {holding: false, answer: 8 * time.Second},
		"renew":   {holding: true, answer: 14 * time.Second},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer()).init()
			if tc.holding {
				p.start()
			}
			p.store.Intercept(slow(4 * time.Second))
			if !tc.holding {
				p.start()
			}
			sleep(tc.answer)
			p.wantPhase(lockagent.Holding)
			p.store.Intercept(memstore.Silent)
			sleep(19500*time.Millisecond - time.Nanosecond)
			p.wantHeld(true)
			sleep(time.Nanosecond)
			if p.state().Held {
				t.Error("held for longer than the TTL less margin from when the request was sent")
			}
		})
	}
}

// slow answers after d.
func slow(d time.Duration) func(context.Context, memstore.Call, func()) error {
	return func(ctx context.Context, _ memstore.Call, do func()) error {
		do()
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// k8s contrib#2933: an HTTP endpoint showed an old leader. The answer comes from
// the clock even when the loop stands still.
func TestCaseB10NotHeldThoughTheLoopStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start()
		p.log.freezeAt(t, "cannot go on")
		p.store.Intercept(memstore.Refuse)
		waited := make(chan time.Duration, 1)
		go func() {
			p.agent.Status().Wait(t.Context(), func(st lockagent.State) bool { return !st.Held })
			waited <- p.machine.Boot()
		}()
		began := p.machine.Boot()
		time.Sleep(23500*time.Millisecond - time.Nanosecond)
		if !p.state().Held {
			t.Error("not held before deadline - margin")
		}
		time.Sleep(time.Nanosecond)
		if p.state().Held {
			t.Error("held at deadline - margin")
		}
		if got, want := <-waited-began, 23500*time.Millisecond; got != want {
			t.Errorf("who waits for the end was told after %s, want %s", got, want)
		}
	})
}
