package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Store keeps one lock in one Redis. It is safe for concurrent use. [Open] makes
// one.
type Store struct {
	link     *link
	kind     agentenv.Kind
	resource string
	keys     []string
	timing   timing
	wait     int // replicas
	fitness  fitness

	closed    context.Context // ends with Close
	close     context.CancelFunc
	listeners sync.WaitGroup
}

var _ lockagent.Store = (*Store)(nil)

// Acquire is one script, and no message to anyone while the lock is simply held.
func (s *Store) Acquire(ctx context.Context, c lockagent.Claim) (lockagent.Answer, error) {
	const op = "acquire"
	if err := checkClaim(c); err != nil {
		return lockagent.Answer{}, s.fail(op, err)
	}
	if err := s.fitness.check(ctx); err != nil {
		return lockagent.Answer{}, s.fail(op, err)
	}
	script, keys := acquireScript, s.keys
	if c.Workload != "" {
		script, keys = askingAcquireScript, s.askingKeys(c)
	}
	reply, err := s.run(ctx, c, script.run, keys,
		c.Owner, c.TTL.Milliseconds(), who(c), c.Permits, c.Priority)
	if err != nil {
		return lockagent.Answer{}, s.fail(op, err)
	}
	r := replyReader{values: reply}
	var a lockagent.Answer
	switch outcome := r.text(); outcome {
	case "granted":
		a = lockagent.Answer{Granted: true, Token: r.number()}
	case "busy":
		a = lockagent.Answer{
			Position: int(r.number()), Waiters: int(r.number()),
			RetryAfter: time.Duration(r.number()) * time.Millisecond, Limit: int(r.number()),
		}
		if len(r.values) > 0 {
			a.Asked = r.text()
		}
	case "other":
		return a, s.fail(op, errOtherKind)
	default:
		r.unknown(outcome)
	}
	return a, s.fail(op, r.err)
}

// Renew is one script.
func (s *Store) Renew(ctx context.Context, c lockagent.Claim) (lockagent.Renewal, error) {
	if c.Workload != "" {
		return s.askedRenew(ctx, c)
	}
	return s.renewal(ctx, "renew", renewScript, c, c.TTL)
}

// Shorten is one script.
func (s *Store) Shorten(ctx context.Context, c lockagent.Claim, ttl time.Duration) (lockagent.Renewal, error) {
	return s.renewal(ctx, "shorten", shortenScript, c, ttl)
}

func (s *Store) renewal(ctx context.Context, op string, p plainScript, c lockagent.Claim, ttl time.Duration) (lockagent.Renewal, error) {
	c.TTL = ttl
	if err := checkClaim(c); err != nil {
		return lockagent.Renewal{}, s.fail(op, err)
	}
	reply, err := s.run(ctx, c, p.run, s.keys, c.Owner, ttl.Milliseconds(), c.Token)
	if err != nil {
		return lockagent.Renewal{}, s.fail(op, err)
	}
	r := replyReader{values: reply}
	renewal := r.renewal()
	return renewal, s.fail(op, r.err)
}

// Release is one script, and at most two messages for each permit that it frees.
func (s *Store) Release(ctx context.Context, c lockagent.Claim) (bool, error) {
	const op = "release"
	reply, err := s.run(ctx, c, releaseScript.run, s.keys, c.Owner)
	if err != nil {
		return false, s.fail(op, err)
	}
	r := replyReader{values: reply}
	return r.text() == "released", s.fail(op, r.err)
}

// run runs a script where the lock's keys are. What begins a hold waits for the
// replicas, if so wanted.
func (s *Store) run(ctx context.Context, c lockagent.Claim, script runner, keys []string, args ...any) (reply []any, err error) {
	do := s.link.do
	if s.wait > 0 {
		do = s.link.pinned // for what WAIT waits for is that of its own connection
	}
	err = do(ctx, func(server caller) error {
		reply, err = script(ctx, server, keys, args...)
		if err == nil && s.wait > 0 && begins(c, reply) {
			err = s.replicate(ctx, server)
		}
		return err
	})
	return reply, err
}

// Warnings are what there is to know about the server although it does its work.
func (s *Store) Warnings() []lockagent.Problem {
	if w := s.fitness.warnings.Load(); w != nil {
		return *w
	}
	return nil
}

// Close ends all connections and listeners.
func (s *Store) Close() error {
	s.close()
	s.listeners.Wait()
	return s.link.client.Close()
}

// The limits of a claim's TTL; the scripts have the same ones.
const (
	minTTL = time.Millisecond
	maxTTL = 30*time.Minute - time.Millisecond
)

// checkClaim refuses what a script must never see: PEXPIRE 0, for one, deletes.
func checkClaim(c lockagent.Claim) error {
	switch {
	case c.Owner == "":
		return fmt.Errorf("the claim has no owner id")
	case strings.ContainsAny(c.Owner, " \t\r\n"):
		return fmt.Errorf("the owner id %q is more than one word", c.Owner)
	case strings.ContainsAny(c.Workload, " \t\r\n{}"):
		return fmt.Errorf("the workload %q is no UID", c.Workload)
	case c.TTL < minTTL || c.TTL > maxTTL || c.TTL%time.Millisecond != 0:
		return fmt.Errorf("the ttl is %s: it must be whole milliseconds, at least 1ms and under 30m", c.TTL)
	case c.Permits < 1:
		return fmt.Errorf("the permits are %d: there must be at least one", c.Permits)
	case c.Priority < -100 || c.Priority > 100:
		return fmt.Errorf("the priority is %d: it must be from -100 to 100", c.Priority)
	}
	return nil
}

// who is what Redis is told of who that is, for those who look: the words that
// are not empty, such as "pod=etl-0 namespace=orders node=n1".
func who(c lockagent.Claim) string {
	words := make([]byte, 0, 256)
	add := func(name, value string) {
		if value != "" {
			words = append(append(append(words, ' '), name...), value...)
		}
	}
	add("pod=", c.Pod)
	add("namespace=", c.Namespace)
	add("node=", c.Node)
	add("workload=", c.Workload)
	add("replicaset=", c.ReplicaSet)
	if c.Revision != 0 {
		add("revision=", strconv.FormatInt(c.Revision, 10))
	}
	return strings.TrimPrefix(string(words), " ")
}
