package lockagent

import (
	"context"
	"fmt"
	"time"
)

// Store keeps the holds and the queue of one lock. Every method is one atomic
// step by the store's own clock, may be called again after an unknown outcome
// (a time-out, a lost reply) without harm, and returns by ctx's deadline. An
// error is a [*StoreError] and means that the outcome is unknown unless its
// code says otherwise; it never means "busy" or "lost".
type Store interface {
	// Acquire takes a permit for c.Owner, or keeps its place in the queue, or
	// queues it. A hold of c.Owner that is still alive is granted again with the
	// same token and a full TTL. It is also the waiter's heartbeat: a waiter that
	// has not called for c.TTL is forgotten. One that has been queued for two
	// seconds asks a holder of its workload and of a lower revision to yield.
	Acquire(ctx context.Context, c Claim) (Answer, error)

	// Renew gives c.Owner's hold a full TTL again, and confirms an offer: then the
	// claim has no token yet. It never revives a hold that has ended. It tells who
	// asks for the hold, if that waiter is still there, and takes c.Revision for the
	// hold's if it is higher.
	Renew(ctx context.Context, c Claim) (Renewal, error)

	// Shorten cuts the remaining life of c.Owner's hold to at most ttl. It is for
	// an end that may not be the app's. It never lengthens and never revives.
	Shorten(ctx context.Context, c Claim, ttl time.Duration) (Renewal, error)

	// Release ends c.Owner's hold, if there is one, takes it out of the queue, if
	// it is there, and offers what has become free to the next waiters. It tells
	// whether there was a hold of c.Owner to end: false is a warning, not an error.
	Release(ctx context.Context, c Claim) (bool, error)

	// Transfer passes c.Owner's hold on to the heir that was named in the reply to
	// Renew, past everyone else in the queue, as an offer with a token of its own.
	// It answers Passed; or Held: the heir is not there any more, the question is
	// withdrawn and the hold is as it was; or that the hold had ended before.
	Transfer(ctx context.Context, c Claim, h Heir) (Outcome, error)

	// Listen opens c.Owner's own channel. Once it has returned, no wake-up is
	// missed until ctx ends, which closes the channel. After a broken connection
	// it subscribes again by itself and sends a [Wake] of kind [WakeRetry].
	Listen(ctx context.Context, c Claim) (<-chan Wake, error)

	// Close ends all connections. Calls under way fail.
	Close() error
}

// Revisions is what a Store may know beside its lock: an undo gives an old
// ReplicaSet a new revision while its pods run or wait.
type Revisions interface {
	// Revision is the one that c's ReplicaSet has now; 0 if nobody has said.
	Revision(ctx context.Context, c Claim) (int64, error)
}

// Claim is who asks, and for what. But for Token and Revision it stays the same
// from the first Acquire to the Release; a new acquisition has a new Owner.
type Claim struct {
	Owner    string        // a new random id for each acquisition, one word; a capability, never shown
	Permits  int           // the caller's limit; 1 for a mutex
	TTL      time.Duration // whole milliseconds, from 1s
	Priority int           // -100 to 100, higher goes first
	Token    int64         // of the hold, for Renew and Shorten: the store may have lost it; 0 if it is not known

	// Who this is, for those who look.
	Pod, Namespace, Node string

	// With handoff only: a waiter of a workload asks its holders of a lower revision.
	Workload, ReplicaSet string // UIDs
	Revision             int64  // from 1
}

// Answer is what Acquire says.
type Answer struct {
	Granted bool
	Token   int64 // if granted: the fencing token

	// If not granted:
	Position   int           // place in the queue, from 1
	Waiters    int           // length of the queue
	RetryAfter time.Duration // when to ask again because nobody will say so; 0: at the next heartbeat
	Limit      int           // the smallest permits among the caller and the live holders
	Asked      string        // the pod of the holder that this call has asked to yield; empty: none
}

// Outcome is what became of a hold.
type Outcome string

// The outcomes of Renew, Shorten and Transfer.
const (
	Held   Outcome = "held"   // still the caller's
	Gone   Outcome = "gone"   // ended, and nobody has it (or, of a semaphore, it is simply not there)
	Taken  Outcome = "taken"  // another has it
	Passed Outcome = "passed" // by Transfer: the heir has it, by this call or an earlier one
)

// Renewal is what Renew and Shorten say.
type Renewal struct {
	Outcome Outcome
	Token   int64 // if held
	Heir    *Heir // if held: a newer revision asks for the lock, and waits; nil: none does
}

// Heir is a waiter that asks a holder of an older revision of its workload to
// yield, and the question by which it does: Transfer answers that one, and
// nothing that may be asked later.
type Heir struct {
	Owner    string `json:"owner"` // a capability, never shown
	Question string `json:"question"`

	// Who this is, for people.
	Pod      string `json:"pod"`
	Revision int64  `json:"revision"`
}

// WakeKind says why an owner is woken.
type WakeKind string

// The reasons to wake an owner.
const (
	WakeOffer WakeKind = "offer" // a permit was put in its name for a few seconds: Renew confirms
	WakeNext  WakeKind = "next"  // it is first in line now; After says when a hold can expire
	WakeRetry WakeKind = "retry" // something may have been missed: Acquire
	WakeYield WakeKind = "yield" // to a holder: a newer revision asks for the hold; Renew says which
)

// Wake is one message on an owner's channel.
type Wake struct {
	Kind  WakeKind
	After time.Duration // with WakeNext; 0 if unknown
}

// Code names a kind of failure. It is part of the app's API (state.json).
type Code string

// The codes of a StoreError, and some of the agent's own.
const (
	CodeUnreachable   Code = "unreachable"    // no connection, or it broke
	CodeTimeout       Code = "timeout"        // no answer in time
	CodeTLS           Code = "tls"            // one end does not accept the other's certificate, or speaks no TLS
	CodeWrongPassword Code = "wrong_password" // WRONGPASS, NOAUTH
	CodeNoPermission  Code = "no_permission"  // NOPERM: the ACL user may not do this
	CodeWrongType     Code = "wrong_type"     // a key of the lock holds something else; nothing was overwritten
	CodeOtherKind     Code = "other_kind"     // the name is held as the other kind of lock; nothing was changed
	CodeOutOfMemory   Code = "out_of_memory"  // OOM
	CodeNotWritable   Code = "not_writable"   // READONLY, LOADING, MASTERDOWN, NOREPLICAS: not a primary that takes writes now
	CodeNotReplicated Code = "not_replicated" // the hold began, but too few replicas had it in time: it must be released
	CodeUnfit         Code = "unfit"          // the server is too old, or may lose locks by its settings
	CodeUnexpected    Code = "unexpected"     // anything else
	CodeStateDir      Code = "state_dir"      // not the store: the state folder cannot be written, so nothing is acquired
	CodePermitsDiffer Code = "permits_differ" // not an error of the store: a holder of the semaphore has fewer permits, which count
	CodeBusy          Code = "busy"           // not an error of the store: the lock is not free, and on-busy is fail
	CodeWaitTimeout   Code = "wait_timeout"   // not an error of the store: the wait-timeout is over
)

// gaveUp tells whether c is how an attempt ends without the lock.
func (c Code) gaveUp() bool { return c == CodeBusy || c == CodeWaitTimeout }

// The codes of a store's warnings, which keep nobody from holding.
const (
	CodeEviction    Code = "eviction"     // the store may drop holds when its memory is full
	CodeMinReplicas Code = "min_replicas" // a primary that is cut off from its replicas goes on granting
	CodeUnchecked   Code = "unchecked"    // the store does not say what it is
)

// Warner is a Store that can say what is to be known about its server although it
// does its work.
type Warner interface {
	// Warnings are those of the latest look at the server. It waits for nothing.
	Warnings() []Problem
}

// StoreError is what every method of a Store fails with. Its text names the
// operation and the resource, and never a password.
type StoreError struct {
	Op       string // acquire, renew, shorten, release, transfer, listen, revision
	Resource string
	Code     Code
	Err      error
}

func (e *StoreError) Error() string { return fmt.Sprintf("%s %q: %v", e.Op, e.Resource, e.Err) }

func (e *StoreError) Unwrap() error { return e.Err }
