package memstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// Call is one request of a Store.
type Call struct {
	Op    string // acquire, renew, shorten, release, listen
	Owner string
	At    time.Time
}

// Store is one agent's way to a Server. It implements lockagent.Store.
type Store struct {
	server *Server

	mu        sync.Mutex
	calls     []Call
	intercept func(ctx context.Context, c Call, do func()) error
}

// NewStore is a way to s that never fails.
func NewStore(s *Server) *Store { return &Store{server: s} }

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
	err = s.do(ctx, "acquire", c, func() { a = s.server.acquire(c) })
	return a, err
}

// Renew implements lockagent.Store.
func (s *Store) Renew(ctx context.Context, c lockagent.Claim) (r lockagent.Renewal, err error) {
	err = s.do(ctx, "renew", c, func() { r = s.server.renew(c) })
	return r, err
}

// Shorten implements lockagent.Store.
func (s *Store) Shorten(ctx context.Context, c lockagent.Claim, ttl time.Duration) (r lockagent.Renewal, err error) {
	err = s.do(ctx, "shorten", c, func() { r = s.server.shorten(c, ttl) })
	return r, err
}

// Release implements lockagent.Store.
func (s *Store) Release(ctx context.Context, c lockagent.Claim) (had bool, err error) {
	err = s.do(ctx, "release", c, func() { had = s.server.release(c) })
	return had, err
}

// Listen implements lockagent.Store.
func (s *Store) Listen(ctx context.Context, c lockagent.Claim) (<-chan lockagent.Wake, error) {
	ear := make(chan lockagent.Wake, 8)
	if err := s.do(ctx, "listen", c, func() { s.server.hear(ctx, c.Owner, ear) }); err != nil {
		return nil, err
	}
	return ear, nil
}

// Close implements lockagent.Store.
func (s *Store) Close() error { return nil }

func (s *Store) do(ctx context.Context, op string, c lockagent.Claim, run func()) error {
	call := Call{Op: op, Owner: c.Owner, At: time.Now()}
	s.mu.Lock()
	s.calls = append(s.calls, call)
	intercept := s.intercept
	s.mu.Unlock()
	if intercept == nil {
		run()
		return nil
	}
	err := intercept(ctx, call, run)
	if err == nil {
		return nil
	}
	code := lockagent.CodeUnreachable
	if errors.Is(err, context.DeadlineExceeded) {
		code = lockagent.CodeTimeout
	}
	return &lockagent.StoreError{Op: op, Resource: "memory", Code: code, Err: err}
}

// hear sends owner's wake-ups to ear until ctx ends, and closes it then.
func (s *Server) hear(ctx context.Context, owner string, ear chan lockagent.Wake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ears[owner] = ear
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ears[owner] == ear {
			delete(s.ears, owner)
		}
		close(ear)
	})
}
