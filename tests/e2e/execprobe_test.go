//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// A pod that ends by itself while an exec probe is under way hands over like any
// other: the agent knows that the kubelet has had its answers, and the probe ends
// with the agent, so nobody reads of one that has failed. The kubelet may ask once
// more, and find that there is no container: that it calls an error, and forgets.
func TestAnExecProbeUnderWayIsNoFailure(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.pod("first", mutex(lockName, "probe", "exec"), never, apps(app("app", "-run=8s")))
	s.awaitLives(startWithin, 1)
	s.pod("second", mutex(lockName, "probe", "exec"))
	s.awaitWaiters(1)
	s.mustHandOver(0)
	for _, e := range s.eventsOf(s.get("first")) {
		if strings.Contains(e.Message, "probe failed") {
			t.Errorf("event: %s", e.Message)
		}
	}
}
