package memstore

import (
	"math"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

const (
	askAfter   = 2 * time.Second  // in the queue
	askLasts   = 90 * time.Second // without an answer
	quietAfter = 30 * time.Second // an answer
)

// question is what is between the revisions of one workload: a holder is asked
// to yield to an heir, or, without one, there has been an answer not long ago.
type question struct {
	ends     time.Time
	holder   string
	heir     string
	asked    time.Time
	answered time.Time // holds that began since are left alone; zero: all are
	revision int64     // but not by one above this
}

func (l *lock) question(workload string) *question {
	q := l.questions[workload]
	if q != nil && !q.ends.After(l.server.now()) {
		delete(l.questions, workload)
		q = nil
	}
	return q
}

// settle ends a question. For a while no revision up to the one that asked asks
// for a hold that began since.
func (l *lock) settle(workload string, answered time.Time, revision int64) {
	l.questions[workload] = &question{answered: answered, revision: revision, ends: l.server.now().Add(quietAfter)}
}

// inVain ends a question that has come to nothing: for a while nobody asks.
func (l *lock) inVain(workload string) { l.settle(workload, time.Time{}, math.MaxInt64) }

// ask has a waiter ask for a hold. It returns the pod that it has asked, and when
// it has to call again to ask; 0: its heartbeats do.
func (l *lock) ask(c lockagent.Claim) (pod string, again time.Duration) {
	if c.Workload == "" || c.Revision == 0 {
		return "", 0
	}
	q := l.question(c.Workload)
	if q != nil && q.heir != "" {
		return l.inherit(q, c)
	}
	holder, spared := l.oldest(c, q)
	switch {
	case holder == "" && spared:
		return "", q.ends.Sub(l.server.now())
	case holder == "":
		return "", 0
	}
	now := l.server.now()
	if wait := l.queue[l.place(c.Owner)].since.Add(askAfter).Sub(now); wait > 0 {
		return "", wait
	}
	if l.ears[c.Owner] == nil { // it would ask in vain
		return "", 0
	}
	l.questions[c.Workload] = &question{holder: holder, heir: c.Owner, asked: now, ends: now.Add(askLasts)}
	return l.tell(holder), 0
}

// newer tells whether one of a workload is newer than another of it. Those of one
// ReplicaSet are equals, whichever has read a new revision first.
func newer(c, than lockagent.Claim) bool {
	return c.Revision > than.Revision && (c.ReplicaSet == "" || c.ReplicaSet != than.ReplicaSet)
}

// inherit puts a waiter in the place of an heir that is not there any more, and
// has it look again as long as there is one.
func (l *lock) inherit(q *question, c lockagent.Claim) (pod string, again time.Duration) {
	h := l.holds[q.holder]
	switch {
	case h == nil:
		l.inVain(c.Workload)
	case q.heir == c.Owner || !newer(c, h.claim):
	case l.heir(q.heir, h) != nil || l.ears[c.Owner] == nil:
		return "", askAfter
	default:
		q.heir = c.Owner
		return l.tell(q.holder), 0
	}
	return "", 0
}

func (l *lock) tell(holder string) (pod string) {
	if ear := l.ears[holder]; ear != nil {
		say(ear, lockagent.Wake{Kind: lockagent.WakeYield})
	}
	return l.holds[holder].claim.Pod
}

// oldest is the holder to ask: of the lowest revision, and of these the one that
// has held longest. spared tells that there is one that is left alone for now.
func (l *lock) oldest(c lockagent.Claim, q *question) (oldest string, spared bool) {
	for owner, h := range l.holds {
		if h.claim.Workload != c.Workload || !newer(c, h.claim) {
			continue
		}
		if q != nil && c.Revision <= q.revision && !h.since.Before(q.answered) {
			spared = true
			continue
		}
		o := l.holds[oldest]
		if o == nil || h.claim.Revision < o.claim.Revision ||
			h.claim.Revision == o.claim.Revision && h.since.Before(o.since) {
			oldest = owner
		}
	}
	return oldest, spared
}

// heir is the waiter that may have h: nil unless it is newer, there, and hears.
func (l *lock) heir(owner string, h *hold) *waiter {
	place := l.place(owner)
	if place < 0 || l.holds[owner] != nil || l.ears[owner] == nil {
		return nil
	}
	w := l.queue[place]
	if w.offered || !newer(w.claim, h.claim) {
		return nil
	}
	return w
}

// asks is the heir that c's hold is asked for. One that is not there any more has
// asked in vain.
func (l *lock) asks(c lockagent.Claim, h *hold) *lockagent.Heir {
	q := l.question(c.Workload)
	if q == nil || q.holder != c.Owner {
		return nil
	}
	w := l.heir(q.heir, h)
	switch {
	case l.holds[q.heir] != nil: // by another way
		delete(l.questions, c.Workload)
		return nil
	case w == nil:
		l.inVain(c.Workload)
		return nil
	}
	return &lockagent.Heir{
		Owner: q.heir, Question: strconv.FormatInt(q.asked.UnixMicro(), 10),
		Pod: w.claim.Pod, Revision: w.claim.Revision,
	}
}

func (l *lock) transfer(c lockagent.Claim, heir lockagent.Heir) lockagent.Outcome {
	l.purge()
	h := l.holds[c.Owner]
	switch {
	case h == nil && l.holds[heir.Owner] != nil:
		return lockagent.Passed
	case h == nil:
		return l.lost().Outcome
	}
	asks := l.asks(c, h)
	if asks == nil || asks.Question != heir.Question {
		return lockagent.Held
	}
	delete(l.holds, c.Owner)
	w := l.queue[l.place(asks.Owner)]
	l.settle(c.Workload, l.server.now(), w.claim.Revision)
	if len(l.holds) < l.limit(w.claim.Permits) {
		l.offerTo(w)
		l.tellNext()
	} else {
		l.offer("", true)
	}
	return lockagent.Passed
}
