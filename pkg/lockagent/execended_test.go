package lockagent_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// At TERM the agent gives the lock back only if the kubelet cannot have killed it
// for its probes: an exec probe may be answered and fail all the same.
func TestCaseB05B08TermAfterExecProbes(t *testing.T) {
	const second = time.Second
	tests := map[string]struct {
		probe    func(*pod)
		busy     bool
		wantLeft time.Duration
	}{
		"asked all the time": {func(p *pod) { probed(p, 2*time.Minute) }, false, freed},
		"until the next process is there": {func(p *pod) {
			probed(p, time.Minute)
			sleep(3 * second)
		}, false, freed},
		"just now, by a probe from before the pod's end": {func(p *pod) { justProbed(p, time.Minute) }, true, brief},
		"asked no more": {func(p *pod) {
			probed(p, time.Minute)
			sleep(5 * second)
		}, false, short},
		"one was killed": {func(p *pod) {
			probed(p, time.Minute)
			p.agent.ProbeBroken()
			probed(p, 48*second)
		}, false, short},
		"one was killed before any that may have failed now": {func(p *pod) {
			probed(p, time.Minute)
			p.agent.ProbeBroken()
			probed(p, 52*second)
		}, false, freed},
		"one began late": {func(p *pod) {
			probed(p, time.Minute)
			sleep(5 * second)
			probed(p, 30*second)
		}, false, short},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer(), func(c *agentenv.Config) { c.ProbeListen = c.StateDir + "/probe.sock" }).init().start()
			p.busy = tc.busy
			tc.probe(p)
			p.prestop()
			sleep(10 * time.Millisecond)
			p.wantHeld(true)
			p.term()
			p.wantExit(87, 0)
			p.wantLeft(tc.wantLeft)
		})
	}
}
