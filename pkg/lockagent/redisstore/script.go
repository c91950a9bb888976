package redisstore

import (
	"context"
	"crypto/sha1" //nolint:gosec // it is how Redis names scripts
	"embed"
	"encoding/hex"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var sources embed.FS

// The scripts that can make someone a holder, and those that cannot, are two
// types, because they reach Redis in two ways.
var (
	acquireScript = grantingScript{assemble("lock", "queue", "offer", "acquire")}
	releaseScript = grantingScript{assemble("lock", "queue", "offer", "release")}
	renewScript   = plainScript{assemble("lock", "queue", "renew")}
	shortenScript = plainScript{assemble("lock", "queue", "shorten")}
)

// script is the text that Redis runs, and the name that Redis gives it.
type script struct{ source, sha string }

// assemble joins files of lua/ to one script.
func assemble(files ...string) script {
	var b strings.Builder
	for _, file := range files {
		text, err := sources.ReadFile("lua/" + file + ".lua")
		if err != nil {
			panic(err) // a file that is not embedded: seen by every test
		}
		b.Write(text)
	}
	sum := sha1.Sum([]byte(b.String())) //nolint:gosec // see the import
	return script{b.String(), hex.EncodeToString(sum[:])}
}

// grantingScript is only ever run by its name. A Redis that does not know the
// name has just started, perhaps without its data: loading it is the one moment
// at which a new server can be told from the old, and never happens by EVAL.
type grantingScript struct{ script }

func (g grantingScript) run(ctx context.Context, c *redis.Client, keys []string, args ...any) ([]any, error) {
	reply, err := c.EvalSha(ctx, g.sha, keys, args...).Slice()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return reply, err
	}
	if err := c.ScriptLoad(ctx, g.source).Err(); err != nil {
		return nil, err
	}
	return c.EvalSha(ctx, g.sha, keys, args...).Slice()
}

// plainScript makes nobody a holder, so it may run on any server at any time.
type plainScript struct{ script }

func (p plainScript) run(ctx context.Context, c *redis.Client, keys []string, args ...any) ([]any, error) {
	reply, err := c.EvalSha(ctx, p.sha, keys, args...).Slice()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return reply, err
	}
	return c.Eval(ctx, p.source, keys, args...).Slice()
}
