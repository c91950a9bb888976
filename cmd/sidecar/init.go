package main

import (
	"fmt"
	"os"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// initialize raises the epoch. It is the command of the init container, which
// the kubelet runs whenever it starts the whole pod anew.
func initialize(p program) int {
	dir := stateDir(p)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return p.fail(err)
	}
	epoch, err := lockagent.RaiseEpoch(dir)
	if err != nil {
		return p.fail(err)
	}
	_, _ = fmt.Fprintf(p.stdout, "epoch %d\n", epoch)
	return lockagent.ExitOK
}

// prestop marks the agent as terminating. It is the command of the preStop hook.
func prestop(p program) int {
	if err := lockagent.MarkTerminating(stateDir(p), nil); err != nil {
		return p.fail(err)
	}
	return lockagent.ExitOK
}

func stateDir(p program) string {
	if dir, _ := p.lookup(agentenv.StateDirVar); dir != "" {
		return dir
	}
	return agentenv.Default().StateDir
}

func (p program) fail(err error) int {
	_, _ = fmt.Fprintf(p.stderr, "holdfast-agent: %v\n", err)
	return lockagent.ExitConfig
}
