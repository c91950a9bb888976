package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// sentinels ask one Sentinel after the other where the primary is, each on a
// connection that lives no longer than the answer takes: thousands of agents that
// stay connected would use up what connections a Sentinel has.
type sentinels struct {
	master string
	client func(addr string) *redis.Client
	call   time.Duration // for all of them together
	every  time.Duration // between two looks

	mu    sync.Mutex
	addrs []string // the one that answered last comes first
	asked time.Time
}

func (s *sentinels) find(ctx context.Context) (string, error) {
	s.mu.Lock()
	addrs := append([]string(nil), s.addrs...)
	s.mu.Unlock()
	patience := s.call / time.Duration(len(addrs)+1)
	var errs []error
	for i, addr := range addrs {
		primary, err := s.question(ctx, addr, patience)
		if err != nil {
			errs = append(errs, fmt.Errorf("sentinel %s: %w", addr, err))
			continue
		}
		s.answered(i, addr)
		return primary, nil
	}
	return "", errors.Join(errs...)
}

func (s *sentinels) question(ctx context.Context, addr string, patience time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := s.client(addr)
	defer func() { _ = c.Close() }()
	place, err := c.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.master).StringSlice()
	switch {
	case errors.Is(err, redis.Nil) || err == nil && len(place) != 2:
		return "", fmt.Errorf("it knows no primary of the name %q", s.master)
	case err != nil:
		return "", err
	}
	return net.JoinHostPort(place[0], place[1]), nil
}

// answered puts the Sentinel that was at place i first.
func (s *sentinels) answered(i int, addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = time.Now()
	if i > 0 && i < len(s.addrs) && s.addrs[i] == addr {
		copy(s.addrs[1:i+1], s.addrs[:i])
		s.addrs[0] = addr
	}
}

// look asks now and then although all seems well: a primary that is cut off from
// its replicas goes on serving those who still reach it, while the Sentinels have
// made another one. It takes little of the time of the call that it precedes, and
// Sentinels that do not answer say nothing about the primary.
func (s *sentinels) look(ctx context.Context) string {
	if !s.due() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, s.call/4)
	defer cancel()
	primary, err := s.find(ctx)
	if err != nil {
		return ""
	}
	return primary
}

// due tells whether it is time to look, and if so begins to count anew.
func (s *sentinels) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.asked) < s.every {
		return false
	}
	s.asked = time.Now()
	return true
}

func (s *sentinels) failed()                   {}
func (s *sentinels) moved(string, string) bool { return false }
func (s *sentinels) hosts() int                { return 1 }
