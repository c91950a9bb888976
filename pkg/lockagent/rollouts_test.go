package lockagent_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// Three revisions of a Deployment and another workload's pod want one lock, under
// all the faults of the test without handoff, and rollouts are undone. Never does
// one hold while another does or while another's app runs, and tokens only grow.
func TestCaseB01RolloutsNeverRunTwoApps(t *testing.T) {
	for seed := range uint64(3) {
		bubble(t, fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 3))
			server := memstore.NewServer()
			replicas := []*replica{{pod: newPod(t, server).init().start()}}
			for n := range int64(3) {
				replicas = append(replicas, &replica{pod: newPod(t, server, revision(n+1)).init().start()})
			}
			newest, yields := int64(3), 0
			var last int64
			for range 40 * 60 * 4 {
				last = max(last, quarterSecond(t, replicas, last))
				switch r := replicas[dice.IntN(4)]; {
				case r.yielded():
					yields++
				case dice.IntN(20) == 0 && r.stopped.IsZero():
					r.disturb(dice)
				case dice.IntN(400) == 0:
					newest++
					server.Publish(r.cfg.ReplicaSet, newest)
				}
			}
			if yields < 5 {
				t.Errorf("yields = %d: the rollouts did not do much", yields)
			}
		})
	}
}

// yielded tells, once, that an agent has ended to yield.
func (r *replica) yielded() bool {
	if r.stopped.IsZero() || !strings.Contains(r.log.String(), "yielding to a newer revision") || r.counted == r.log {
		return false
	}
	r.counted = r.log
	return true
}
