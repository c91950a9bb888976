package lockagent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// replica is a pod with its app, as a kubelet treats them.
type replica struct {
	*pod
	appRuns bool      // started at the first hold
	stopped time.Time // when the app is dead; zero while nothing stops it
	counted *logbook  // of an agent whose yield was counted
}

// kubelet starts the app once the lock is held. After the agent's end it stops
// the app, which takes 3 s, and then restarts the pod in place.
func (r *replica) kubelet() {
	select {
	case <-r.code:
		r.stopped = time.Now().Add(3 * time.Second)
	default:
	}
	switch {
	case r.stopped.IsZero():
		r.appRuns = r.appRuns || r.state().Held
	case !time.Now().Before(r.stopped):
		r.pod, r.appRuns, r.stopped = r.killed().init().start(), false, time.Time{}
	}
}

// disturb does something to the replica.
func (r *replica) disturb(dice *rand.Rand) {
	switch dice.IntN(9) {
	case 0:
		r.store.Intercept(memstore.Silent)
	case 1:
		r.store.Intercept(memstore.Deaf)
	case 2:
		r.store.Intercept(slow(time.Duration(dice.IntN(6000)) * time.Millisecond))
	case 3:
		r.store.Intercept(flaky(dice.Uint64()))
	case 4:
		r.machine.suspend(time.Duration(dice.IntN(40)) * time.Second)
	case 5: // the agent alone dies
		r.pod = r.killed().start()
	case 6: // the whole pod dies
		r.pod, r.appRuns = r.killed().init().start(), false
	case 7: // the agent alone is ended
		r.term()
		<-r.ended
		r.pod = r.killed().start()
	default:
		r.store.Intercept(nil)
	}
}

// flaky loses every other answer.
func flaky(seed uint64) func(context.Context, memstore.Call, func()) error {
	dice := rand.New(rand.NewPCG(seed, 1))
	return func(_ context.Context, _ memstore.Call, do func()) error {
		do()
		if dice.IntN(2) == 0 {
			return errors.New("connection reset by peer")
		}
		return nil
	}
}

// Three pods and one lock under faults: silence, lost and slow answers, machines
// that sleep, processes that are killed or ended. Never does one call itself
// holding while another does or while another's app runs, and tokens only grow.
func TestAtMostOneHoldsAndNoAppRunsWithout(t *testing.T) {
	for seed := range uint64(3) {
		bubble(t, fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 2))
			server := memstore.NewServer()
			replicas := make([]*replica, 3)
			for i := range replicas {
				replicas[i] = &replica{pod: newPod(t, server).init().start()}
			}
			tokens := map[int64]bool{}
			var last int64
			for range 40 * 60 * 4 {
				last = max(last, quarterSecond(t, replicas, last))
				tokens[last] = true
				if r := replicas[dice.IntN(3)]; dice.IntN(20) == 0 && r.stopped.IsZero() {
					r.disturb(dice)
				}
			}
			if len(tokens) < 10 {
				t.Errorf("different holds = %d: the faults did not do much", len(tokens))
			}
		})
	}
}

// quarterSecond goes by, and returns the holder's token, 0 without one.
func quarterSecond(t *testing.T, replicas []*replica, last int64) (token int64) {
	t.Helper()
	sleep(250 * time.Millisecond)
	for _, r := range replicas {
		r.kubelet()
	}
	return wantOneHolder(t, replicas, last)
}

// wantOneHolder returns the holder's token, 0 without one.
func wantOneHolder(t *testing.T, replicas []*replica, last int64) (token int64) {
	t.Helper()
	holder := -1
	for i, r := range replicas {
		st := r.state()
		if !st.Held {
			continue
		}
		if holder >= 0 {
			t.Fatalf("replicas %d and %d both hold\n%s\n\n%s", holder, i, replicas[holder].log, r.log)
		}
		if st.Token < last {
			t.Fatalf("token %d after %d", st.Token, last)
		}
		holder, token = i, st.Token
	}
	for i, r := range replicas {
		if holder >= 0 && i != holder && r.appRuns {
			t.Fatalf("replica %d holds while the app of %d runs\n%s\n\n%s", holder, i, replicas[holder].log, r.log)
		}
	}
	return token
}

// A semaphore of two between three: the third waits until one has released.
func TestTwoPermitsBetweenThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		var pods []*pod
		for range 3 {
			pods = append(pods, newPod(t, server, permits(2)).init().start())
		}
		pods[0].wantPhase(lockagent.Holding)
		pods[1].wantPhase(lockagent.Holding)
		pods[2].wantPhase(lockagent.Waiting)
		if err := pods[0].agent.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		pods[2].wantPhase(lockagent.Holding)
	})
}

// redisson#5115: the worker was dead and its lock lived on. The agent ends after
// its app, and the next in line has the lock at once.
func TestCaseB17B05NextHoldsOnceTheAppHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		first, second := newPod(t, server).init().start(), newPod(t, server).init().start()
		sleep(time.Minute)
		second.wantPhase(lockagent.Waiting)
		first.prestop()
		sleep(10 * time.Millisecond)
		first.term()
		synctest.Wait()
		second.wantPhase(lockagent.Holding) // no time has passed
	})
}
