package main

import (
	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
)

// openStore prepares the Redis of cfg; it connects only when first used. All that
// can be wrong now is the URL, so the error names where that came from.
func openStore(cfg agentenv.Config) (lockagent.Store, error) {
	store, err := redisstore.Open(redisstore.Options{
		URL:          cfg.Redis.URL,
		UsernameFile: cfg.Redis.UsernameFile,
		PasswordFile: cfg.Redis.PasswordFile,
		CAFile:       cfg.Redis.CAFile,
		CertFile:     cfg.Redis.CertFile,
		KeyFile:      cfg.Redis.KeyFile,

		SentinelUsernameFile: cfg.Redis.SentinelUsernameFile,
		SentinelPasswordFile: cfg.Redis.SentinelPasswordFile,

		Kind:     cfg.Kind,
		Resource: cfg.Resource,
		TTL:      cfg.TTL,

		Wait:          cfg.Redis.Wait,
		AllowEviction: cfg.Redis.AllowEviction,
	})
	if err == nil {
		return store, nil
	}
	name := agentenv.Prefix + "REDIS_URL"
	if cfg.Redis.URLFile != "" {
		name += "_FILE"
	}
	return nil, &agentenv.VarError{Name: name, Err: err}
}
