// Package memstore is a lock server in memory, for tests of the agent's timing:
// it runs in a synctest bubble and can be made silent, slow or forgetful. It
// keeps the contract of [lockagent.Store] as one Redis does, but proves nothing
// about Redis.
package memstore

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Server keeps locks. It lives by time.Now.
type Server struct {
	mu    sync.Mutex
	ahead time.Duration
	token int64
	locks map[name]*lock

	revisions map[string]int64 // by ReplicaSet, as published
}

// name tells locks apart: the two kinds of one resource share nothing.
type name struct {
	kind     agentenv.Kind
	resource string
}

// NewServer has no lock that is held.
func NewServer() *Server { return &Server{locks: map[name]*lock{}, revisions: map[string]int64{}} }

// Advance lets time pass on the server alone.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

// Holders are the owners whose holds of any lock are alive, offers included.
func (s *Server) Holders() []string {
	var owners []string
	s.each(func(l *lock) {
		for owner := range l.holds {
			owners = append(owners, owner)
		}
	})
	slices.Sort(owners)
	return owners
}

// Queue is who waits for any lock, in order.
func (s *Server) Queue() []string {
	var owners []string
	s.each(func(l *lock) {
		for _, w := range l.queue {
			owners = append(owners, w.claim.Owner)
		}
	})
	return owners
}

// Listeners are the owners whose channels are open.
func (s *Server) Listeners() []string {
	var owners []string
	s.each(func(l *lock) {
		for owner := range l.ears {
			owners = append(owners, owner)
		}
	})
	return owners
}

// Forget loses all data but the last token, as a restart would.
func (s *Server) Forget() {
	s.each(func(l *lock) {
		clear(l.holds)
		clear(l.questions)
		l.queue = nil
	})
}

// Publish says which revision a ReplicaSet has now.
func (s *Server) Publish(replicaSet string, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revisions[replicaSet] = revision
}

// Drop ends owner's hold and tells nobody, as an expiry does.
func (s *Server) Drop(owner string) {
	s.each(func(l *lock) { delete(l.holds, owner) })
}

// Give makes owner the holder of a mutex, whoever had it.
func (s *Server) Give(resource, owner string, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(name{agentenv.Mutex, resource})
	clear(l.holds)
	l.take(lockagent.Claim{Owner: owner, Permits: 1}, ttl)
}

func (s *Server) each(do func(*lock)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.locks {
		l.purge()
		do(l)
	}
}

func (s *Server) now() time.Time { return time.Now().Add(s.ahead) }

// lock finds or makes a lock.
func (s *Server) lock(n name) *lock {
	l := s.locks[n]
	if l == nil {
		l = &lock{
			server: s, name: n, holds: map[string]*hold{},
			ears: map[string]chan lockagent.Wake{}, questions: map[string]*question{},
		}
		s.locks[n] = l
	}
	return l
}
