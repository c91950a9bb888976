package main

import (
	"errors"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// openStore connects to the Redis of cfg.
func openStore(agentenv.Config) (lockagent.Store, error) {
	return nil, errors.New("redis is not supported yet")
}
