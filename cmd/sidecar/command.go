package main

import (
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// program is what a command gets from outside.
type program struct {
	args           []string // without the program's name
	lookup         func(string) (string, bool)
	stdout, stderr io.Writer

	// errorRest is how long run rests in a pod before it ends for a bad
	// configuration: the kubelet restarts it at once, as often as it ends.
	errorRest time.Duration
}

// command is one row of the usage.
type command struct {
	name, args, does string
	run              func(program) int
}

// commands lists all, run first: it is what no argument means.
func commands() []command {
	return []command{
		{"run", "", "hold the lock until TERM (the default)", run},
		{"init", "", "note that all containers of the pod start anew", initialize},
		{"prestop", "", "note that the kubelet has begun to stop the agent", prestop},
		{"probe", "[--for DURATION]", "ask the running agent whether it is well: an exec probe", probe},
		{"gate", "", "end once the running agent holds the lock: exit code 75 if it has given up", gate},
		{"check", "[--wait DURATION]", "ask the running agent: exit code 0 held, 1 not held, 2 error", check},
		{"version", "", "print the version", tellVersion},
		{"exec", "-- COMMAND [ARG...]", "run a command while the lock is held (not supported yet)", notYet("exec")},
	}
}

// dispatch runs the command that the arguments name, and returns its exit code.
func dispatch(p program) int {
	name := "run"
	if len(p.args) > 0 {
		name, p.args = p.args[0], p.args[1:]
	}
	switch name {
	case "help", "-h", "-help", "--help":
		usage(p.stdout)
		return lockagent.ExitOK
	case "-version", "--version":
		name = "version"
	}
	for _, c := range commands() {
		if c.name != name {
			continue
		}
		if c.args == "" && len(p.args) > 0 {
			_, _ = fmt.Fprintf(p.stderr, "holdfast-agent %s takes no arguments, but got %q\n", name, p.args)
			return lockagent.ExitConfig
		}
		return c.run(p)
	}
	_, _ = fmt.Fprintf(p.stderr, "unknown command %q\n\n", name)
	usage(p.stderr)
	return lockagent.ExitConfig
}

func usage(w io.Writer) {
	_, _ = fmt.Fprint(w, "usage: holdfast-agent [COMMAND]\n\n")
	for _, c := range commands() {
		_, _ = fmt.Fprintf(w, "  %-26s %s\n", c.name+" "+c.args, c.does)
	}
}

func notYet(name string) func(program) int {
	return func(p program) int {
		_, _ = fmt.Fprintf(p.stderr, "holdfast-agent %s is not supported yet\n", name)
		return lockagent.ExitConfig
	}
}
