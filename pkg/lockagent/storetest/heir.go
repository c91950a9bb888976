package storetest

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// of makes the owner a pod of a workload, and of the ReplicaSet with which the
// revision began.
func of(workload string, revision int64) func(*lockagent.Claim) {
	return func(c *lockagent.Claim) {
		c.Workload, c.ReplicaSet, c.Revision = workload, fmt.Sprintf("%s-rs-%d", workload, revision), revision
	}
}

// asks calls again, and expects to have asked the pod to yield.
func (o *owner) asks(pod string) lockagent.Answer {
	o.s.Helper()
	a := o.acquire()
	if a.Granted || a.Asked != pod {
		o.s.Fatalf("%s: got %+v, want to wait, having asked %q", o.name, a, pod)
	}
	return a
}

// wantHeir renews, and expects to be asked by the heir, or by nobody.
func (o *owner) wantHeir(heir *owner) lockagent.Heir {
	o.s.Helper()
	r, err := o.store.Renew(o.s.ctx(), o.claim)
	o.outcome("renew", r, err, lockagent.Held)
	switch {
	case heir == nil && r.Heir == nil:
		return lockagent.Heir{}
	case heir == nil || r.Heir == nil || r.Heir.Owner != heir.claim.Owner || r.Heir.Question == "" ||
		r.Heir.Pod != heir.claim.Pod || r.Heir.Revision != heir.claim.Revision:
		o.s.Fatalf("%s is asked by %+v, want %+v", o.name, r.Heir, heir)
	}
	return *r.Heir
}

// transfers expects the outcome.
func (o *owner) transfers(heir lockagent.Heir, want lockagent.Outcome) {
	o.s.Helper()
	got, err := o.store.Transfer(o.s.ctx(), o.claim, heir)
	if err != nil {
		o.s.Fatalf("%s: %v", o.name, err)
	}
	if got != want {
		o.s.Fatalf("%s: transfer gives %q, want %q", o.name, got, want)
	}
}
