//go:build e2e

package e2e

import (
	"fmt"
	"testing"
)

// How long a rollout leaves a singleton without a running app. A few go on at one
// time, and nothing else.
func TestHandoffLatency(t *testing.T) {
	const rounds, together = 5, 4
	for i := range samples(rounds) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			for n := range together {
				t.Run(fmt.Sprint(n), handoffLatency)
			}
		})
	}
}

func handoffLatency(t *testing.T) {
	t.Parallel()
	s := begin(t)
	r := s.rollout()
	asked := s.watchYields()
	r.restart()
	at := s.awaitYield(asked)
	r.mustComplete()
	lives := s.awaitLives(startWithin, 2)
	figure(handover, figureYield, "s", (lives[0].last - at).Seconds())
	figure(handover, figureGap, "s", (lives[1].start - lives[0].last).Seconds())
}

// The names of figures of a rollout.
const (
	figureYield = "a rollout: the holder is asked to yield → its app is dead"
	figureGap   = "a rollout: end of the old app → first line of the new one"
)
