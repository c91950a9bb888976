package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

//go:embed lua/probe.lua
var probeScript string

// probes are all commands of the scripts, in a form that changes nothing: there
// is no way before 7.0 to ask whether one is allowed but to give it.
var probes = []any{
	"TIME", "EXISTS KEY", "GET KEY", "PTTL KEY", "HGET KEY f", "HLEN KEY", "HMGET KEY f",
	"ZCARD KEY", "ZCOUNT KEY 0 1", "ZMSCORE KEY m", "ZRANGE KEY 0 0", "ZRANGEBYSCORE KEY 0 1", "ZRANK KEY m",
	"ZREVRANGEBYSCORE KEY 1 0", "ZSCORE KEY m",
	"SET KEY v XX PX 1", "ZADD KEY XX 0 m", "ZREM KEY m", "HSET KEY f v", "HDEL KEY f", "PEXPIRE KEY 1", "DEL KEY",
	"PUBLISH KEY m", "PUBSUB NUMSUB KEY",
}

// errUnfit is what is wrong with a server until somebody changes its settings.
type errUnfit string

func (e errUnfit) Error() string { return string(e) }

// errRefused names the commands that the user may not give.
type errRefused []string

func (e errRefused) Error() string {
	return "NOPERM the user has no permission for " + strings.Join(e, ", ")
}

// oldest is the Redis that has all that the scripts use.
const oldest = "6.2"

// fitness is what is known of a server before the first hold is asked of it.
type fitness struct {
	link          *link
	key           string // that nothing uses
	wait          int    // replicas
	allowEviction bool

	mu      sync.Mutex
	probed  bool
	seen    int // connections there had been when the server was looked at; -1: never
	refusal error

	warnings atomic.Pointer[[]lockagent.Problem]
}

// check looks at the server if that may be another one than last time, or was not
// fit then. It fails if no hold must be asked of it, or if it does not answer.
func (f *fitness) check(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.probed {
		if err := f.probe(ctx); err != nil {
			return err
		}
		f.probed = true // a right that is taken away later shows by itself
	}
	if _, count := f.link.conns.last(); count != f.seen || f.refusal != nil {
		info, err := f.ask(ctx)
		if err != nil {
			return err
		}
		warnings, refusal := f.judge(info)
		f.warnings.Store(&warnings)
		f.refusal, f.seen = refusal, count
	}
	return f.refusal
}

// probe tells which commands the user may not give.
func (f *fitness) probe(ctx context.Context) error {
	var refused []string
	err := f.link.do(ctx, func(c caller) (err error) {
		refused, err = c.Eval(ctx, probeScript, []string{f.key}, probes...).StringSlice()
		if err == nil && f.wait > 0 {
			err = c.Wait(ctx, 0, time.Millisecond).Err() // not for scripts
		}
		return err
	})
	if err == nil && len(refused) > 0 {
		return errRefused(refused)
	}
	return err
}

// ask returns what the server says of itself; nothing if the user may not ask.
func (f *fitness) ask(ctx context.Context) (map[string]string, error) {
	info := map[string]string{}
	for _, section := range []string{"server", "memory", "replication"} {
		var text string
		err := f.link.do(ctx, func(c caller) (err error) {
			text, err = c.Info(ctx, section).Result()
			return err
		})
		var refused redis.Error
		if errors.As(err, &refused) && unsaid(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[name] = value
			}
		}
	}
	return info, nil
}

// judge tells what to know about a server, and why it must not be used, if so.
func (f *fitness) judge(info map[string]string) (warnings []lockagent.Problem, refusal error) {
	warn := func(code lockagent.Code, message string) {
		warnings = append(warnings, lockagent.Problem{Code: code, Message: message})
	}
	if len(info) == 0 {
		warn(lockagent.CodeUnchecked, "the redis user may not run INFO, so version, role, eviction and replicas are not checked; give it the ACL of docs/redis.md")
		return warnings, nil
	}
	if version := info["redis_version"]; older(version, oldest) {
		return nil, errUnfit(fmt.Sprintf("redis %s is too old; %s or later is needed", version, oldest))
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" && policy != "" {
		evicts := fmt.Sprintf("redis may evict locks when its memory is full, for maxmemory-policy is %s; set it to noeviction", policy)
		if info["maxmemory"] != "0" && !f.allowEviction {
			return nil, errUnfit(evicts + ", or allow it with HOLDFAST_REDIS_ALLOW_EVICTION=true")
		}
		warn(lockagent.CodeEviction, evicts)
	}
	if _, set := info["min_slaves_good_slaves"]; !set && info["connected_slaves"] != "0" {
		warn(lockagent.CodeMinReplicas, "redis has replicas, and min-replicas-to-write is 0: a primary that is cut off from them goes on granting and renewing; set it to 1")
	}
	return warnings, nil
}

// older compares two versions such as 6.2.16 by the numbers that both have. What
// is no number is not older than anything.
func older(version, than string) bool {
	a, b := strings.Split(version, "."), strings.Split(than, ".")
	for i := range min(len(a), len(b)) {
		m, err := strconv.Atoi(a[i])
		n, _ := strconv.Atoi(b[i])
		if err != nil || m > n {
			return false
		}
		if m < n {
			return true
		}
	}
	return false
}
