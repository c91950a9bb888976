package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// errOtherKind is an answer of the acquire script, not of Redis.
var errOtherKind = errors.New("held as the other kind")

// redisCodes are the words by which Redis names its errors. Most errors start
// with theirs; before 7.0 that of a command inside a script is buried in the
// text of another one.
var redisCodes = map[string]lockagent.Code{
	"WRONGPASS":   lockagent.CodeWrongPassword,
	"NOAUTH":      lockagent.CodeWrongPassword,
	"NOPERM":      lockagent.CodeNoPermission,
	"WRONGTYPE":   lockagent.CodeWrongType,
	"OOM":         lockagent.CodeOutOfMemory,
	"READONLY":    lockagent.CodeNotWritable,
	"LOADING":     lockagent.CodeNotWritable,
	"MASTERDOWN":  lockagent.CodeNotWritable,
	"CLUSTERDOWN": lockagent.CodeNotWritable,
	"TRYAGAIN":    lockagent.CodeNotWritable,
	"NOREPLICAS":  lockagent.CodeNotWritable,
	"MISCONF":     lockagent.CodeNotWritable,
}

// codeOfRedis finds the first such word.
func codeOfRedis(text string) lockagent.Code {
	if strings.HasPrefix(text, "ASK ") { // a slot of a cluster is moving
		return lockagent.CodeNotWritable
	}
	// NOPERM inside a script: up to 7.0, and from 7.2 on.
	if strings.Contains(text, "The user executing the script can't") || strings.Contains(text, "ACL failure in script") {
		return lockagent.CodeNoPermission
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if code, ok := redisCodes[word]; ok {
			return code
		}
	}
	return lockagent.CodeUnexpected
}

// fail makes a StoreError of err; nil stays nil.
func (s *Store) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	code := codeOf(err)
	var fromRedis redis.Error
	if errors.As(err, &fromRedis) {
		err = fromRedis // without what the client says around it
	}
	return &lockagent.StoreError{Op: op, Resource: s.resource, Code: code, Err: s.explain(code, err)}
}

func codeOf(err error) lockagent.Code {
	var fromRedis redis.Error
	var network net.Error
	var file *fs.PathError
	switch {
	case errors.As(err, &file): // of a secret; looks like a net.Error
		return lockagent.CodeUnexpected
	case errors.Is(err, errOtherKind):
		return lockagent.CodeOtherKind
	case isTLS(err):
		return lockagent.CodeTLS
	case errors.Is(err, errReplica):
		return lockagent.CodeNotWritable
	case errors.As(err, new(errNotReplicated)):
		return lockagent.CodeNotReplicated
	case errors.As(err, new(errUnfit)):
		return lockagent.CodeUnfit
	case errors.As(err, new(errRefused)):
		return lockagent.CodeNoPermission
	case errors.As(err, &fromRedis):
		return codeOfRedis(err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.Is(err, redis.ErrPoolTimeout), errors.As(err, &network) && network.Timeout():
		return lockagent.CodeTimeout
	case errors.As(err, &network), errors.Is(err, redis.ErrClosed),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return lockagent.CodeUnreachable
	}
	return lockagent.CodeUnexpected
}

// isTLS tells whether it is for their certificates that two ends do not talk.
func isTLS(err error) bool {
	var refused *tls.CertificateVerificationError
	var told *net.OpError
	return errors.As(err, &refused) || errors.Is(err, errCertificate) ||
		errors.As(err, &told) && told.Op == "remote error" // which only crypto/tls says: an alert of the other end
}

// explain says what to do about a failure that does not pass by itself.
func (s *Store) explain(code lockagent.Code, err error) error {
	switch code {
	case lockagent.CodeWrongPassword:
		return fmt.Errorf("redis refuses the username or password; put the right ones into the secret: %w", err)
	case lockagent.CodeTLS:
		return fmt.Errorf("redis and this agent do not accept each other; look at ca.crt, tls.crt and tls.key of the secret, and at server-name in the url: %w", err)
	case lockagent.CodeNoPermission:
		return fmt.Errorf("the redis user may not do this; give it the ACL of docs/redis.md: %w", err)
	case lockagent.CodeWrongType:
		return fmt.Errorf("another program keeps something else under a key that starts with %q; rename the lock or remove the key: %w", s.keys[0], err)
	case lockagent.CodeOtherKind:
		return fmt.Errorf("the name is held as a %s now; use it as one kind, or rename one of the two: %w", s.otherKind(), err)
	case lockagent.CodeOutOfMemory:
		return fmt.Errorf("redis is out of memory, so it can grant nothing new: %w", err)
	case lockagent.CodeNotWritable:
		return fmt.Errorf("this redis takes no writes now: %w", err)
	}
	if redis.HasErrorPrefix(err, "MOVED") {
		return fmt.Errorf("this redis is a cluster; use redis+cluster:// in the url: %w", err)
	}
	return err
}

func (s *Store) otherKind() agentenv.Kind {
	if s.kind == agentenv.Mutex {
		return agentenv.Semaphore
	}
	return agentenv.Mutex
}
