package main

import (
	"errors"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

func openStore(cfg agentenv.Config) (lockagent.Store, error) {
	return nil, errors.New("stub")
}
