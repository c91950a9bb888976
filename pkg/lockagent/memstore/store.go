package memstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Call is one request of a Store.
type Call struct {
	Op    string // acquire, renew, shorten, release, transfer, listen, revision
	Owner string
	At    time.Time
}

// Store is one agent's way to a lock of a Server. It implements lockagent.Store.
type Store struct {
	server *Server
	name   name
	open   context.Context // until Close
	close  context.CancelFunc

	mu        sync.Mutex
	calls     []Call
	intercept func(ctx context.Context, c Call, do func()) error
}

// NewStore is a way to a lock of s that never fails.
func NewStore(s *Server, kind agentenv.Kind, resource string) *Store {
	open, stop := context.WithCancel(context.Background())
	return &Store{server: s, name: name{kind, resource}, open: open, close: stop}
}

// Intercept puts f in the way of every request from now on; nil takes it out.
// The server does what is asked for when f calls do, if it does. An error of f
// is the request's; whether do was called makes it a request or a reply that
// was lost.
func (s *Store) Intercept(f func(ctx context.Context, c Call, do func()) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// Calls are the requests so far, in order.
func (s *Store) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Silent is a server that does not answer: a request ends with its context.
func Silent(ctx context.Context, _ Call, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// Deaf is a server that answers nobody, but does what it is asked.
func Deaf(ctx context.Context, _ Call, do func()) error {
	do()
	<-ctx.Done()
	return ctx.Err()
}

// Refuse is a server that is not there.
func Refuse(context.Context, Call, func()) error { return errors.New("connection refused") }

// Acquire implements lockagent.Store.
func (s *Store) Acquire(ctx context.Context, c lockagent.Claim) (a lockagent.Answer, err error) {
	var otherKind bool
	err = s.do(ctx, "acquire", c, func(l *lock) {
		if otherKind = l.other().held(); !otherKind {
			a = l.acquire(c)
		}
	})
	if err == nil && otherKind {
		err = s.fail("acquire", lockagent.CodeOtherKind, errors.New("held as the other kind of lock"))
	}
	return a, err
}

// Renew implements lockagent.Store.
func (s *Store) Renew(ctx context.Context, c lockagent.Claim) (r lockagent.Renewal, err error) {
	err = s.do(ctx, "renew", c, func(l *lock) { r = l.renew(c) })
	return r, err
}

// Shorten implements lockagent.Store.
func (s *Store) Shorten(ctx context.Context, c lockagent.Claim, ttl time.Duration) (r lockagent.Renewal, err error) {
	if ttl < time.Millisecond {
		return r, s.fail("shorten", lockagent.CodeUnexpected, fmt.Errorf("to %s", ttl))
	}
	err = s.do(ctx, "shorten", c, func(l *lock) { r = l.shorten(c, ttl) })
	return r, err
}

// Release implements lockagent.Store.
func (s *Store) Release(ctx context.Context, c lockagent.Claim) (had bool, err error) {
	err = s.do(ctx, "release", c, func(l *lock) { had = l.release(c) })
	return had, err
}

// Transfer implements lockagent.Store.
func (s *Store) Transfer(ctx context.Context, c lockagent.Claim, h lockagent.Heir) (o lockagent.Outcome, err error) {
	err = s.do(ctx, "transfer", c, func(l *lock) { o = l.transfer(c, h) })
	return o, err
}

// Revision implements lockagent.Revisions.
func (s *Store) Revision(ctx context.Context, c lockagent.Claim) (r int64, err error) {
	err = s.do(ctx, "revision", c, func(*lock) { r = s.server.revisions[c.ReplicaSet] })
	return r, err
}

// Listen implements lockagent.Store.
func (s *Store) Listen(ctx context.Context, c lockagent.Claim) (<-chan lockagent.Wake, error) {
	ear := make(chan lockagent.Wake, 8)
	err := s.do(ctx, "listen", c, func(l *lock) { l.ears[c.Owner] = ear })
	if err != nil {
		return nil, err
	}
	go func() {
		select {
		case <-ctx.Done():
		case <-s.open.Done():
		}
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		if l := s.server.lock(s.name); l.ears[c.Owner] == ear {
			delete(l.ears, c.Owner)
		}
		close(ear)
	}()
	return ear, nil
}

// Close implements lockagent.Store.
func (s *Store) Close() error {
	s.close()
	return nil
}

// do runs one request on the server, if nothing is in its way.
func (s *Store) do(ctx context.Context, op string, c lockagent.Claim, run func(*lock)) error {
	if problem := senseless(c); problem != "" {
		return s.fail(op, lockagent.CodeUnexpected, errors.New(problem))
	}
	if s.open.Err() != nil {
		return s.fail(op, lockagent.CodeUnreachable, errors.New("closed"))
	}
	call := Call{Op: op, Owner: c.Owner, At: time.Now()}
	s.mu.Lock()
	s.calls = append(s.calls, call)
	intercept := s.intercept
	s.mu.Unlock()

	err := ctx.Err()
	locked := func() {
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		run(s.server.lock(s.name))
	}
	switch {
	case err != nil:
	case intercept == nil:
		locked()
	default:
		err = intercept(ctx, call, locked)
	}
	var failed *lockagent.StoreError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return failed
	case errors.Is(err, context.DeadlineExceeded):
		return s.fail(op, lockagent.CodeTimeout, err)
	}
	return s.fail(op, lockagent.CodeUnreachable, err)
}

func (s *Store) fail(op string, code lockagent.Code, err error) error {
	return &lockagent.StoreError{Op: op, Resource: s.name.resource, Code: code, Err: err}
}

// senseless says what is wrong with a claim.
func senseless(c lockagent.Claim) string {
	switch {
	case c.Owner == "":
		return "no owner"
	case strings.ContainsAny(c.Owner, " \t\r\n"):
		return "an owner of two words"
	case c.Permits < 1:
		return "no permits"
	case c.TTL < time.Millisecond || c.TTL%time.Millisecond != 0:
		return "the ttl is not a number of milliseconds"
	case c.Priority < -100 || c.Priority > 100:
		return "the priority is out of range"
	}
	return ""
}
