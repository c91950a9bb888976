//go:build e2e

package e2e

import "testing"

// A pod that ends by itself while an exec probe is under way hands over like any
// other: the agent knows that the kubelet has had its answers, and the probe ends
// with the agent, so nobody reads of one that has failed.
func TestAnExecProbeUnderWayIsNoFailure(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.pod("first", mutex(lockName, "probe", "exec"), never, apps(app("app", "-run=8s")))
	s.awaitLives(startWithin, 1)
	s.pod("second", mutex(lockName, "probe", "exec"))
	s.awaitWaiters(1)
	s.mustHandOver(0)
	s.mustHaveNoWarning("first")
}
