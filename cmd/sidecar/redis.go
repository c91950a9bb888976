package main

import (
	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
)

// openStore prepares the Redis of cfg; it connects only when first used.
func openStore(cfg agentenv.Config) (lockagent.Store, error) {
	return redisstore.Open(redisstore.Options{
		URL:          cfg.Redis.URL,
		UsernameFile: cfg.Redis.UsernameFile,
		PasswordFile: cfg.Redis.PasswordFile,
		Kind:         cfg.Kind,
		Resource:     cfg.Resource,
		TTL:          cfg.TTL,
	})
}
