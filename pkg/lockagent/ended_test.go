package lockagent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// What is left of a hold after TERM.
const (
	freed   = 0
	brief   = 2500 * time.Millisecond // for an app that may be being killed
	settled = 5 * time.Second         // for an app that is being killed
	short   = 9500 * time.Millisecond // margin + 3 s
	whole   = 30 * time.Second        // since its last renewal
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
		busy    bool

		wantExit int
		wantLeft time.Duration
	}{
		"outside a pod":                 {outside: true, held: time.Minute, noHook: true, wantExit: 0, wantLeft: freed},
		"the Job's app has ended":       {held: time.Minute, probe: probed, hook: 10 * ms, wantExit: 87, wantLeft: freed},
		"a deleted pod's app has ended": {held: time.Minute, probe: probed, hook: 5420 * ms, wantExit: 87, wantLeft: freed},
		"no probes at all":              {held: time.Minute, hook: 10 * ms, wantExit: 87, wantLeft: freed},
		"held for a moment":             {held: 0, hook: 10 * ms, wantExit: 87, wantLeft: freed},

		"TERM without hook":             {held: time.Minute, probe: probed, noHook: true, wantExit: 87, wantLeft: short},
		"probes stopped being asked":    {held: time.Minute, probe: probedOnceOnly, hook: 10 * ms, wantExit: 87, wantLeft: short},
		"stopped before it was held":    {held: 5900 * ms, probe: probedOnceOnly, hook: 10 * ms, wantExit: 87, wantLeft: short},
		"stood still just before":       {held: time.Minute, probe: stoodStill, hook: 10 * ms, wantExit: 87, wantLeft: short},
		"grace period of the pod":       {held: time.Minute, probe: probed, hook: 30 * second, wantExit: 87, wantLeft: settled},
		"just before the pod's":         {held: time.Minute, probe: probed, hook: 29750 * ms, wantExit: 87, wantLeft: settled},
		"after the pod's":               {held: time.Minute, probe: probed, hook: 34300 * ms, wantExit: 87, wantLeft: settled},
		"grace period of its own":       {held: time.Minute, probe: probed, hook: 10*second + 40*ms, wantExit: 87, wantLeft: settled},
		"late for one of its own":       {held: time.Minute, probe: probed, hook: 10*second + 240*ms, wantExit: 87, wantLeft: settled},
		"deleted by force":              {held: time.Minute, probe: probed, hook: second - 240*ms, wantExit: 87, wantLeft: settled},
		"by force, on a busy node":      {held: time.Minute, probe: probed, hook: 2*second - 1*ms, wantExit: 87, wantLeft: settled},
		"the hook may have come late":   {held: time.Minute, probe: probed, busy: true, hook: 10 * ms, wantExit: 87, wantLeft: brief},
		"no probes, and it may be late": {held: time.Minute, busy: true, hook: 10 * ms, wantExit: 87, wantLeft: brief},
		"late in a long grace period":   {held: time.Minute, probe: probed, busy: true, hook: 5420 * ms, wantExit: 87, wantLeft: brief},
		"busy, at a grace period":       {held: time.Minute, probe: probed, busy: true, hook: 10 * second, wantExit: 87, wantLeft: settled},
		"busy, but just probed":         {held: time.Minute, probe: justProbed, busy: true, hook: 10 * ms, wantExit: 87, wantLeft: freed},
		"not yet by force":              {held: time.Minute, probe: probed, hook: 740 * ms, wantExit: 87, wantLeft: freed},
		"a longer one in the pod":       {held: time.Minute, probe: probed, hook: 40300 * ms, grace: time.Hour, wantExit: 87, wantLeft: freed},
		"the end of a longer one":       {held: time.Minute, probe: probed, hook: 10 * time.Minute, grace: 10 * time.Minute, wantExit: 87, wantLeft: settled},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
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
			p.busy = tc.busy
			if !tc.noHook {
				p.prestop()
			}
			sleep(tc.hook)
			p.wantHeld(true)
			p.term()
			p.wantExit(tc.wantExit, 0)
			p.wantLeft(tc.wantLeft)
		})
	}
}

func probed(p *pod, d time.Duration) {
	for ; d > 0; d -= 2 * time.Second {
		if err := p.agent.Live(); err != nil {
			p.t.Error(err)
		}
		p.agent.Probed()
		sleep(2 * time.Second)
	}
}

func probedOnceOnly(p *pod, d time.Duration) {
	probed(p, 1)
	sleep(d - 2*time.Second)
}

func justProbed(p *pod, d time.Duration) {
	probed(p, d)
	p.agent.Probed()
	sleep(730 * time.Millisecond)
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
