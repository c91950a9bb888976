package redisstore

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // it is how Redis names scripts
	_ "embed"
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

// The parts of the scripts, as they are in the program's file: every agent
// would pay for a copy, and only the first one that meets a new Redis needs it.
var (
	//go:embed lua/lock.lua
	lockPart []byte
	//go:embed lua/ttl.lua
	ttlPart []byte
	//go:embed lua/holder.lua
	holderPart []byte
	//go:embed lua/clock.lua
	clockPart []byte
	//go:embed lua/fence.lua
	fencePart []byte
	//go:embed lua/free.lua
	freePart []byte
	//go:embed lua/unwanted.lua
	unwantedPart []byte
	//go:embed lua/pass.lua
	passPart []byte
	//go:embed lua/kept.lua
	keptPart []byte
	//go:embed lua/permit.lua
	permitPart []byte
	//go:embed lua/record.lua
	recordPart []byte
	//go:embed lua/hold.lua
	holdPart []byte
	//go:embed lua/queue.lua
	queuePart []byte
	//go:embed lua/offer.lua
	offerPart []byte
	//go:embed lua/acquire.lua
	acquirePart []byte
	//go:embed lua/release.lua
	releasePart []byte
	//go:embed lua/renew.lua
	renewPart []byte
	//go:embed lua/shorten.lua
	shortenPart []byte
)

// The scripts that can make someone a holder, and those that cannot, are two
// types, because they reach Redis in two ways.
var (
	acquireScript = grantingScript{assemble(lockPart, ttlPart, clockPart, fencePart, freePart, holderPart, recordPart, holdPart, queuePart, offerPart, alonePart, acquirePart)}
	releaseScript = grantingScript{assemble(lockPart, holderPart, unwantedPart, clockPart, fencePart, passPart, recordPart, holdPart, queuePart, offerPart, releasePart)}
	renewScript   = plainScript{assemble(lockPart, ttlPart, holderPart, keptPart, clockPart, permitPart, fencePart, recordPart, holdPart, queuePart, renewPart)}
	shortenScript = plainScript{assemble(lockPart, ttlPart, holderPart, clockPart, fencePart, recordPart, holdPart, queuePart, shortenPart)}
)

// script is what Redis runs, and the name that Redis gives it.
type script struct {
	parts [][]byte
	sha   string
}

func assemble(parts ...[]byte) script {
	sum := sha1.New() //nolint:gosec // see the import
	for _, part := range parts {
		_, _ = sum.Write(part) // a hash never fails
	}
	return script{parts, hex.EncodeToString(sum.Sum(nil))}
}

// source is the text that Redis runs.
func (s script) source() string { return string(bytes.Join(s.parts, nil)) }

// runner runs a script on a server, loading it if need be.
type runner func(ctx context.Context, c caller, keys []string, args ...any) ([]any, error)

// grantingScript is only ever run by its name. A Redis that does not know the
// name has just started, perhaps without its data: loading it is the one moment
// at which a new server can be told from the old, and never happens by EVAL.
type grantingScript struct{ script }

func (g grantingScript) run(ctx context.Context, c caller, keys []string, args ...any) ([]any, error) {
	reply, err := c.EvalSha(ctx, g.sha, keys, args...).Slice()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return reply, err
	}
	if err := c.ScriptLoad(ctx, g.source()).Err(); err != nil {
		return nil, err
	}
	return c.EvalSha(ctx, g.sha, keys, args...).Slice()
}

// plainScript makes nobody a holder, so it may run on any server at any time.
type plainScript struct{ script }

func (p plainScript) run(ctx context.Context, c caller, keys []string, args ...any) ([]any, error) {
	reply, err := c.EvalSha(ctx, p.sha, keys, args...).Slice()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return reply, err
	}
	return c.Eval(ctx, p.source(), keys, args...).Slice()
}
