package main

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// The exit codes of probe: the kubelet knows no more than these two.
const (
	probeWell   = 0
	probeFailed = 1
)

// probe is what the kubelet runs where it cannot ask over the network. What it
// prints is in the event of a probe that has failed.
func probe(p program) int {
	flags := flag.NewFlagSet("holdfast-agent probe", flag.ContinueOnError)
	flags.SetOutput(p.stderr)
	lasting := flags.Duration("for", 0, "how long to go on asking; with 0, ask once, and only whether the agent is up")
	every := flags.Duration("every", time.Second, "the pause between two questions")
	if err := flags.Parse(p.args); err != nil {
		return probeFailed
	}
	socket, _ := p.lookup(agentenv.ProbeListenVar)
	err := errors.New("probe takes --for and --every, durations above zero, and nothing else")
	if flags.NArg() == 0 && *lasting >= 0 && *every > 0 {
		err = askProbe(socket, *lasting, *every)
	}
	if err != nil {
		_, _ = fmt.Fprintf(p.stdout, "holdfast-agent probe: %v\n", err)
		return probeFailed
	}
	return probeWell
}

func askProbe(socket string, lasting, every time.Duration) error {
	if !(agentenv.Config{ProbeListen: socket}).ExecProbes() {
		return &agentenv.VarError{Name: agentenv.ProbeListenVar, Value: socket, Err: errors.New("must be the path of a socket, where the agent is told the same")}
	}
	return lockagent.AskProbe(socket, lasting, every)
}
