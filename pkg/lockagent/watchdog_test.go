package lockagent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// wantWatchdog waits for the watchdog to end the process, and sees that it does
// so neither earlier than after nor later than a beat of its own after that.
func (p *pod) wantWatchdog(want int, after time.Duration) {
	p.t.Helper()
	sleep(after - time.Nanosecond)
	p.wantNoWatchdog()
	select {
	case got := <-p.exits:
		if got != want {
			p.t.Errorf("watchdog's exit = %d, want %d", got, want)
		}
	case <-time.After(time.Second + time.Microsecond):
		p.t.Errorf("no exit by the watchdog\n%s", p.log)
	}
}

func (p *pod) wantNoWatchdog() {
	p.t.Helper()
	select {
	case got := <-p.exits:
		p.t.Errorf("the watchdog has ended the process with %d\n%s", got, p.log)
	default:
	}
}

// No kubelet looks at an agent that waits.
func TestCaseB12WatchdogEndsAStalledWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", time.Hour)
		p := newPod(t, server).init().start()
		p.log.freezeAt(t, "cannot go on")
		p.store.Intercept(memstore.Refuse)
		sleep(10*time.Second - time.Nanosecond) // until the heartbeat
		p.wantWatchdog(lockagent.ExitWatchdog, 10*time.Second)
		if err := p.agent.Live(); err != nil { // a kubelet that asked would restart the agent alone, and not the pod
			t.Errorf("live while waiting = %v, want nil", err)
		}
	})
}

// A process that stood still as a whole is not blamed for it.
func TestWatchdogDoesNotBlameAFrozenProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		other(t, server, "other", 24*time.Hour)
		p := newPod(t, server).init().start()
		for range 20 {
			p.machine.suspend(time.Hour)
			sleep(300 * time.Millisecond)
		}
		p.wantNoWatchdog()
		sleep(10 * time.Minute)
		p.wantNoWatchdog()
		p.wantRunning()
	})
}

// The hold has run out, and the loop that should stop the app stands still.
func TestCaseB06WatchdogStopsTheApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start()
		p.log.freezeAt(t, "cannot go on")
		p.store.Intercept(memstore.Refuse)
		p.wantWatchdog(lockagent.ExitLost, 24500*time.Millisecond) // a second after deadline - margin
		if p.heldFile() {
			t.Error("the file held is still there")
		}
	})
}

// It would stop nothing that is not being stopped already.
func TestWatchdogLeavesAnEndingPodAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init().start()
		p.prestop()
		p.log.freezeAt(t, "cannot go on")
		p.store.Intercept(memstore.Refuse)
		sleep(25 * time.Second)
		p.wantNoWatchdog()
		if p.heldFile() {
			t.Error("the file held is still there")
		}
	})
}

func TestWatchdogTellsAnAppThatRunsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer(), notify).init().start()
		p.log.freezeAt(t, "cannot go on")
		p.store.Intercept(memstore.Refuse)
		sleep(25 * time.Second)
		p.wantNoWatchdog()
		if p.heldFile() {
			t.Error("the file held is still there a second after deadline - margin")
		}
	})
}

// Liveness fails when the loop of a holder stands still, so that the kubelet
// kills the agent.
func TestCaseB12LivenessOfAStalledHolder(t *testing.T) {
	tests := map[string]struct {
		ttl, idle time.Duration
	}{
		"short TTL": {ttl: 20 * time.Second, idle: 2 * time.Second},
		"long TTL":  {ttl: 60 * time.Second, idle: 4 * time.Second},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer(), ttl(tc.ttl, 6*time.Second)).init().start()
			p.log.freezeAt(t, "cannot go on")
			p.store.Intercept(memstore.Refuse)
			sleep(tc.ttl / 3) // the loop stands still from here
			sleep(tc.idle)
			if err := p.agent.Live(); err != nil {
				t.Errorf("live after %s = %v, want nil", tc.idle, err)
			}
			sleep(time.Nanosecond)
			if p.agent.Live() == nil {
				t.Errorf("live after more than %s", tc.idle)
			}
		})
	}
}

func TestLivenessOfAHealthyHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer(), func(c *agentenv.Config) { c.TTL, c.Margin = time.Second, 200*time.Millisecond }, notify).init().start()
		for range 600 {
			sleep(time.Second)
			if err := p.agent.Live(); err != nil {
				t.Fatal(err)
			}
		}
		p.wantPhase(lockagent.Holding)
	})
}
