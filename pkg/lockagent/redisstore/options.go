package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Options say which lock, in which Redis. The comment of each field ends with
// its default.
type Options struct {
	URL     string // as docs/redis.md lists them; this or URLFile is required
	URLFile string // file that holds the URL, read by Open

	// Files of secrets are read for each connection. One that is not there is as
	// none. Without the Sentinels' own login they get the URL's.
	UsernameFile         string // file that holds the ACL user; the URL's
	PasswordFile         string // file that holds its password; the URL's
	SentinelUsernameFile string // file that holds the Sentinels' ACL user; the URL's
	SentinelPasswordFile string // file that holds its password; the URL's
	CAFile               string // PEM file of the CAs that a server's certificate may be from; the system's
	CertFile, KeyFile    string // PEM files of the agent's own certificate; none

	Kind     agentenv.Kind // mutex or semaphore; required
	Resource string        // the lock's full name; required
	TTL      time.Duration // of the claims to come: time-outs are parts of it; 30s

	Wait          int  // replicas that must have a hold before it counts; 0
	AllowEviction bool // go on with a Redis that may evict locks; false
}

// Open prepares a Store. It reads the URL but connects only when first used. An
// error names the option that is wrong, and never contains a password.
func Open(o Options) (*Store, error) {
	if o.TTL == 0 {
		o.TTL = agentenv.Default().TTL
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	raw, err := o.url()
	if err != nil {
		return nil, err
	}
	addr, err := parseAddress(raw)
	if err != nil {
		return nil, err
	}
	s := &Store{
		kind: o.Kind, resource: o.Resource, keys: keysOf(o.Kind, o.Resource),
		timing: timingOf(o.TTL), wait: o.Wait,
	}
	s.link = newLink(addr, o, s.timing, s.keys[0])
	s.fitness.link, s.fitness.key, s.fitness.seen = s.link, s.keys[0]+":probe", -1
	s.fitness.wait, s.fitness.allowEviction = o.Wait, o.AllowEviction
	s.closed, s.close = context.WithCancel(context.Background())
	return s, nil
}

func (o Options) check() error {
	var errs []error
	if o.Kind != agentenv.Mutex && o.Kind != agentenv.Semaphore {
		errs = append(errs, fmt.Errorf("kind %q must be mutex or semaphore", o.Kind))
	}
	if o.Resource == "" || strings.ContainsAny(o.Resource, "{}") {
		errs = append(errs, fmt.Errorf("resource %q must be a name without braces", o.Resource))
	}
	if o.TTL < minTTL || o.TTL > maxTTL {
		errs = append(errs, fmt.Errorf("ttl %s must be at least 1ms and under 30m", o.TTL))
	}
	if o.Wait < 0 {
		errs = append(errs, fmt.Errorf("wait %d must be a number of replicas", o.Wait))
	}
	return errors.Join(errs...)
}

func (o Options) url() (string, error) {
	switch {
	case o.URL != "" && o.URLFile != "":
		return "", errors.New("the redis url is given twice, as a value and as a file: keep one of them")
	case o.URL != "":
		return o.URL, nil
	case o.URLFile != "":
		text, err := readTrimmed(o.URLFile)
		if err != nil {
			return "", fmt.Errorf("the redis url: %w", err)
		}
		return text, nil
	default:
		return "", errors.New("the redis url is missing: set it to an address such as redis://127.0.0.1:6379")
	}
}
