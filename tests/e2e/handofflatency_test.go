//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// How long a rollout leaves a singleton without a running app. A few go on at one
// time, and nothing else.
func TestHandoffLatency(t *testing.T) {
	const deployments, times = 4, 5
	t.Run("each", func(t *testing.T) {
		for i := range deployments {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				s := begin(t)
				r := s.rollout()
				asked := s.watchYields()
				for n := range times {
					begun := boot()
					r.restart()
					r.mustComplete()
					lives := s.awaitLives(startWithin, n+2)
					before, after := lives[n], lives[n+1]
					yields := slices.DeleteFunc(asked(), func(at time.Duration) bool { return at < begun })
					if len(yields) == 0 {
						t.Fatal("nobody was asked to yield")
					}
					figure(handover, figureYield, "s", (before.last - yields[0]).Seconds())
					figure(handover, figureGap, "s", (after.start - before.last).Seconds())
				}
			})
		}
	})
}

// The names of figures of a rollout.
const (
	figureYield = "a rollout: the holder is asked to yield → its app is dead"
	figureGap   = "a rollout: end of the old app → first line of the new one"
)
