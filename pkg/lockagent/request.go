package lockagent

import (
	"context"
	"errors"
	"time"
)

// task is a kind of request to the store.
type task int

const (
	rest     task = iota // none
	listen               // open the channel for wake-ups
	acquire              // take a permit, or keep the place in the queue
	confirm              // renew, to confirm an offer
	renew                // renew the hold
	adopt                // renew an earlier process' hold while no app runs
	discard              // release an earlier process' hold
	release              // release, asked for by the app or by the end
	shorten              // cut the hold short
	transfer             // pass an earlier process' hold on to an heir while no app runs
	quit                 // leave the queue for good: the attempt has failed
)

// op is the name of the task in errors: the Store's method.
func (t task) op() string {
	switch t {
	case listen:
		return "listen"
	case acquire:
		return "acquire"
	case confirm, renew, adopt:
		return "renew"
	case shorten:
		return "shorten"
	case transfer:
		return "transfer"
	}
	return "release"
}

// giveUpAfter is how much longer than its time-out a request may take. A store
// keeps to its context; one that does not is not waited for.
const giveUpAfter = 100 * time.Millisecond

// pendingCall is a request that is not answered yet.
type pendingCall struct {
	task   task
	seq    uint64
	sent   time.Duration // boot time before it was sent
	giveUp time.Duration // boot time
	cancel context.CancelFunc
}

// result is what came of a call. Which answer is set depends on the task.
type result struct {
	*pendingCall
	err     error
	answer  Answer
	renewal Renewal
	had     bool // release: there was a hold
	wakes   <-chan Wake
	heir    *Heir   // transfer: to whom
	outcome Outcome // transfer

	live    int64 // the ReplicaSet's revision, if liveErr is nil; 0: not known
	liveErr error
}

// timedOut is the result of a call that is not waited for any longer.
func (c *pendingCall) timedOut(resource string) result {
	return result{pendingCall: c, err: &StoreError{
		Op: c.task.op(), Resource: resource, Code: CodeTimeout, Err: context.DeadlineExceeded,
	}}
}

// send starts the request that is due. Nothing is asked in the name of an owner
// that the state folder does not know: after a crash nobody would know whose
// hold it is.
func (l *loop) send(now time.Duration) {
	if !l.saved && (l.next == listen || l.next == acquire) {
		if err := l.save(); err != nil {
			l.stateDirProblem(err)
			l.retry(l.next, waitBackoff)
			return
		}
	}
	l.launch(l.next, now, l.timeout(now))
}

// launch runs one request on a goroutine of its own.
func (l *loop) launch(t task, now, timeout time.Duration) {
	l.offered, l.again = false, false // what was said before now, this request will find
	l.seq++
	ctx, cancel := context.WithCancel(l.running)
	if t != listen { // its context lives as long as the channel
		ctx, cancel = context.WithTimeout(l.running, timeout)
	}
	l.call = &pendingCall{task: t, seq: l.seq, sent: now, giveUp: now + timeout + giveUpAfter, cancel: cancel}
	if t == acquire || t == confirm || t == adopt {
		l.leftBy = l.nothingLeft(l.call.giveUp)
	}
	claim := l.claim()
	if t == confirm { // a hold of its own, whatever came of an earlier grant
		claim.Token = 0
	}
	go func(r result, c Claim) {
		l.ask(ctx, c, timeout, &r)
		select {
		case l.results <- r:
		case <-l.running.Done():
		}
	}(result{pendingCall: l.call, heir: l.rec.Yield}, claim)
}

// timeout bounds a request: a sixth of the TTL, so that several attempts fit in
// before a hold ends, and never past that end.
func (l *loop) timeout(now time.Duration) time.Duration {
	t := l.cfg.TTL / 6
	switch l.next {
	case renew:
		t = min(t, l.holdEnd()-now)
	case adopt, release, transfer:
		t = min(t, l.rec.Deadline-now)
	}
	return max(t, time.Millisecond)
}

// ask does what the call is for, and waits for the store.
func (l *loop) ask(ctx context.Context, c Claim, timeout time.Duration, r *result) {
	switch r.task {
	case acquire, confirm, renew, adopt:
		l.askRevision(ctx, &c, r, timeout/4)
	}
	switch r.task {
	case listen:
		r.wakes, r.err = l.store.Listen(ctx, c)
	case acquire:
		r.answer, r.err = l.store.Acquire(ctx, c)
	case confirm, renew, adopt:
		r.renewal, r.err = l.store.Renew(ctx, c)
	case shorten:
		r.renewal, r.err = l.store.Shorten(ctx, c, l.shortTo)
	case transfer:
		r.outcome, r.err = l.store.Transfer(ctx, c, *r.heir)
	case discard, release, quit:
		r.had, r.err = l.store.Release(ctx, c)
	}
}

// hear takes a result in, unless it is of a call that is no longer waited for.
func (l *loop) hear(r result) {
	if l.call == nil || r.seq != l.call.seq {
		return
	}
	l.call = nil
	if r.task != listen || r.err != nil {
		r.cancel()
	}
	if r.err != nil {
		l.storeProblem(r.err)
	}
	l.learnRevision(r)
	l.showWarnings()
	switch r.task {
	case listen:
		l.listening(r)
	case acquire:
		l.acquired(r)
	case confirm:
		l.confirmed(r)
	case renew:
		l.renewed(r)
	case adopt:
		l.adopted(r)
	case discard:
		l.discarded(r)
	case quit:
		l.hasQuit(r)
	case release:
		l.released(r)
	case transfer:
		l.transferred(r)
	}
}

// dropCall stops waiting for the call under way.
func (l *loop) dropCall() {
	if l.call != nil {
		l.call.cancel()
		l.call = nil
	}
}

// claim is who asks. Without handoff no workload is in it, so that it neither asks
// for a hold nor is asked.
func (l *loop) claim() Claim {
	c := l.cfg
	claim := Claim{
		Owner: l.rec.Owner, Permits: c.Permits, TTL: c.TTL, Priority: c.Priority, Token: l.rec.Token,
		Pod: c.Pod.Name, Namespace: c.Pod.Namespace, Node: c.Pod.Node,
	}
	if l.yields() {
		claim.Workload, claim.ReplicaSet, claim.Revision = c.Workload, c.ReplicaSet, l.revision()
	}
	return claim
}

// codeOf is the code of a store's error.
func codeOf(err error) Code {
	var se *StoreError
	switch {
	case errors.As(err, &se):
		return se.Code
	case errors.Is(err, context.DeadlineExceeded):
		return CodeTimeout
	}
	return CodeUnexpected
}
