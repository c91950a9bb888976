package lockagent_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// revision makes the pod one of a Deployment's.
func revision(n int64) func(*agentenv.Config) {
	return func(c *agentenv.Config) {
		c.Handoff, c.Workload, c.ReplicaSet, c.Revision = agentenv.HandoffRollout, "web", fmt.Sprintf("web-rs-%d", n), n
		c.Pod.Name = fmt.Sprintf("web-%d", n)
	}
}

// rollout is a mutex that an old revision holds, and for which another workload's
// pod waits, and a new revision behind it.
type rollout struct {
	t               *testing.T
	server          *memstore.Server
	old, third, new *pod
	owner           string // the old one's
}

func newRollout(t *testing.T) *rollout {
	server := memstore.NewServer()
	r := &rollout{t: t, server: server}
	r.old = newPod(t, server, revision(1)).init().start()
	r.old.wantPhase(lockagent.Holding)
	r.owner = server.Holders()[0]
	r.third = newPod(t, server).init().start()
	r.new = newPod(t, server, revision(2)).init().start()
	r.new.wantPhase(lockagent.Waiting)
	return r
}

// yielded is once the old agent has stopped its app for the new revision.
func yielded(t *testing.T) *rollout {
	r := newRollout(t)
	r.old.wantExit(lockagent.ExitYielded, 2*time.Second+time.Millisecond)
	r.wantKept()
	return r
}

// restartInPlace is the kubelet starting the old pod's containers anew.
func (r *rollout) restartInPlace() *pod {
	r.t.Helper()
	r.old = r.old.killed().init().start()
	return r.old
}

// wantKept sees that the lock is the old owner's still.
func (r *rollout) wantKept() {
	r.t.Helper()
	if diff := cmp.Diff([]string{r.owner}, r.server.Holders()); diff != "" {
		r.t.Errorf("holders (-want +got):\n%s", diff)
	}
	r.third.wantPhase(lockagent.Waiting)
}

func (r *rollout) wantNewHolds() {
	r.t.Helper()
	r.new.wantPhase(lockagent.Holding)
	r.third.wantPhase(lockagent.Waiting)
}

// wantOldHoldsAgain, as if nobody had asked.
func (r *rollout) wantOldHoldsAgain() {
	r.t.Helper()
	r.old.wantPhase(lockagent.Holding)
	if got := r.old.state().Token; got != 1 {
		r.t.Errorf("token = %d, want 1: the hold has never ended", got)
	}
	r.wantKept()
	r.old.wantMetric("holdfast_yields_in_vain_total", 1)
	sleep(time.Minute)
	r.wantKept()
}

// gone is the new pod deleted while it waits.
func (r *rollout) gone() {
	r.t.Helper()
	r.new.term()
	r.new.wantExit(lockagent.ExitOK, 0)
}

// operator-sdk#920: the new pod waited for the lock of the old one, which was only
// to be deleted once the new one was ready.
func TestCaseB01NewRevisionTakesTheLockOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRollout(t)
		sleep(2*time.Second - time.Millisecond)
		r.old.wantHeld(true)
		r.old.wantExit(lockagent.ExitYielded, 2*time.Millisecond)
		if st := r.old.state(); st.State != lockagent.Yielding || st.Held || st.Token != 0 {
			t.Errorf("state = %+v, want yielding without a hold", st)
		}
		if got := r.old.read(r.old.cfg.Dir, "state.json"); !strings.Contains(got, `"state":"yielding","held":false`) {
			t.Errorf("state.json = %s, want it yielding", got)
		}
		sleep(8 * time.Second) // for the app to end
		r.wantKept()

		r.restartInPlace()
		r.wantNewHolds()
		if got := r.new.state().Token; got != 2 {
			t.Errorf("token = %d, want 2", got)
		}
		r.old.wantPhase(lockagent.Waiting)
		r.old.wantMetric("holdfast_yields_total", 1)
		r.old.wantMetric("holdfast_losses_total", 0)
		if got := r.server.Queue(); len(got) != 1 {
			t.Errorf("queue = %v, want the third alone while the heir may still have to answer", got)
		}
		sleep(3 * time.Second)
		if got := r.server.Queue(); len(got) != 2 || got[1] == r.owner {
			t.Errorf("queue = %v, want the old pod behind the third, as a new owner", got)
		}
		sleep(time.Hour)
		r.wantNewHolds()
		for log, want := range map[*logbook]string{
			r.new.log: "asked an older revision to yield holder=web-1 revision=2",
			r.old.log: "handed the lock over to=web-2 its_revision=2",
		} {
			if log.count(want) != 1 {
				t.Errorf("%q is not once in\n%s", want, log)
			}
		}
	})
}

// The kubelet may have restarted the agent alone: then the app may run, and the
// lock is nobody else's until it has ended.
func TestYieldingWithTheSameEpochEndsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := yielded(t)
		for range 3 {
			r.old = r.old.killed().start()
			r.old.wantExit(lockagent.ExitYielded, 0)
			r.old.wantPhase(lockagent.Yielding)
			if n := len(r.old.store.Calls()); n != 0 {
				t.Errorf("calls = %d, want none", n)
			}
			r.wantKept()
		}
		r.restartInPlace()
		r.wantNewHolds()
	})
}

// With permits, one pod of the workload yields at a time, and all do.
func TestRolloutOfASemaphore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		var old, all []*pod
		for range 3 {
			old = append(old, newPod(t, server, permits(3), revision(1)).init().start())
		}
		for range 3 {
			all = append(all, newPod(t, server, permits(3), revision(2)).init().start())
		}
		for range 3 {
			sleep(3 * time.Second)
			stopped := restartYielded(t, old)
			if stopped != 1 {
				t.Fatalf("%d pods yielded at once, want one", stopped)
			}
			sleep(8 * time.Second) // until the next heartbeat
		}
		for _, p := range all {
			p.wantPhase(lockagent.Holding)
		}
		for _, p := range old {
			p.wantPhase(lockagent.Waiting)
		}
	})
}

// restartYielded restarts the pods that have yielded in place, and counts them.
func restartYielded(t *testing.T, pods []*pod) (stopped int) {
	t.Helper()
	for i, p := range pods {
		select {
		case code := <-p.code:
			if code != lockagent.ExitYielded {
				t.Errorf("exit code = %d, want %d", code, lockagent.ExitYielded)
			}
			stopped++
			pods[i] = p.killed().init().start()
		default:
		}
	}
	return stopped
}
