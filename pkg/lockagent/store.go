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
	// has not called for c.TTL is forgotten.
	Acquire(ctx context.Context, c Claim) (Answer, error)

	// Renew gives c.Owner's hold a full TTL again, and confirms an offer. It
	// never revives a hold that has ended.
	Renew(ctx context.Context, c Claim) (Renewal, error)

	// Shorten cuts the remaining life of c.Owner's hold to at most ttl. It is for
	// an end that may not be the app's. It never lengthens and never revives.
	Shorten(ctx context.Context, c Claim, ttl time.Duration) (Renewal, error)

	// Release ends c.Owner's hold, if there is one, takes it out of the queue, if
	// it is there, and offers what has become free to the next waiters. It tells
	// whether there was a hold of c.Owner to end: false is a warning, not an error.
	Release(ctx context.Context, c Claim) (bool, error)

	// Listen opens c.Owner's own channel. Once it has returned, no wake-up is
	// missed until ctx ends, which closes the channel. After a broken connection
	// it subscribes again by itself and sends a [Wake] of kind [WakeRetry].
	Listen(ctx context.Context, c Claim) (<-chan Wake, error)

	// Close ends all connections. Calls under way fail.
	Close() error
}

// Claim is who asks, and for what. But for Token it stays the same from the first
// Acquire to the Release; a new acquisition has a new Owner.
type Claim struct {
	Owner    string        // a new random id for each acquisition, one word; a capability, never shown
	Permits  int           // the caller's limit; 1 for a mutex
	TTL      time.Duration // whole milliseconds, from 1s
	Priority int           // -100 to 100, higher goes first
	Token    int64         // of the hold, for Renew and Shorten: the store may have lost it; 0 if it is not known

	// Who this is, for those who look: never used to decide, but for handoff.
	Pod, Namespace, Node string
	Workload, ReplicaSet string
	Revision             int64
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
}

// Outcome is what became of a hold.
type Outcome string

// The outcomes of Renew and Shorten.
const (
	Held  Outcome = "held"  // still the caller's
	Gone  Outcome = "gone"  // ended, and nobody has it (or, of a semaphore, it is simply not there)
	Taken Outcome = "taken" // another has it
)

// Renewal is what Renew and Shorten say.
type Renewal struct {
	Outcome    Outcome
	Token      int64 // if held
	YieldAsked bool  // if held: a newer revision asks for the lock
}

// WakeKind says why a waiter is woken.
type WakeKind string

// The reasons to wake a waiter.
const (
	WakeOffer WakeKind = "offer" // a permit was put in its name for a few seconds: Renew confirms
	WakeNext  WakeKind = "next"  // it is first in line now; After says when a hold can expire
	WakeRetry WakeKind = "retry" // something may have been missed: Acquire
)

// Wake is one message on a waiter's channel.
type Wake struct {
	Kind  WakeKind
	After time.Duration // with WakeNext; 0 if unknown
}

// Code names a kind of failure. It is part of the app's API (state.json).
type Code string

// The codes of a StoreError, and two of the agent's own.
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
	CodeUnexpected    Code = "unexpected"     // anything else
	CodeStateDir      Code = "state_dir"      // not the store: the state folder cannot be written, so nothing is acquired
	CodePermitsDiffer Code = "permits_differ" // not an error of the store: a holder of the semaphore has fewer permits, which count
)

// StoreError is what every method of a Store fails with. Its text names the
// operation and the resource, and never a password.
type StoreError struct {
	Op       string // acquire, renew, shorten, release, listen
	Resource string
	Code     Code
	Err      error
}

func (e *StoreError) Error() string { return fmt.Sprintf("%s %q: %v", e.Op, e.Resource, e.Err) }

func (e *StoreError) Unwrap() error { return e.Err }
