package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// The gate lets the app start when the lock is held, however the agent does
// meanwhile, and not before.
func TestGateEndsOnceTheLockIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []error{errors.New("no such file"), errors.New("no such file"), nil, errors.New("no answer"), nil}
		begin := time.Now()
		once := func() (lockagent.State, error) {
			time.Sleep(time.Minute)
			err := answers[0]
			answers = answers[1:]
			return lockagent.State{Held: len(answers) == 0}, err
		}
		var stdout, stderr bytes.Buffer
		if code := (program{stdout: &stdout, stderr: &stderr}).awaitHeld(t.Context(), once); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		if got, want := time.Since(begin), 5*time.Minute+4*askAgain; got != want {
			t.Errorf("ended after %v, want %v", got, want)
		}
		if got, want := stderr.String(), "holdfast-agent gate: no such file\nholdfast-agent gate: no answer\n"; got != want {
			t.Errorf("it complained %q, want %q: each complaint once", got, want)
		}
	})
}

// A lock that is not to be had is the gate's failure; what only keeps the agent from
// knowing is not, but is told, once for each kind.
func TestGateFailsOnceTheAgentHasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := func(code lockagent.Code, message string) lockagent.State {
			return lockagent.State{
				Kind: "mutex", Resource: "orders/etl", State: lockagent.Waiting,
				Error: &lockagent.Problem{Code: code, Message: message},
			}
		}
		answers := []lockagent.State{
			{},
			state(lockagent.CodeUnreachable, "no route"), state(lockagent.CodeUnreachable, "refused"),
			{},
			state(lockagent.CodeBusy, "not free"),
		}
		once := func() (lockagent.State, error) {
			st := answers[0]
			answers = answers[1:]
			return st, nil
		}
		var stdout, stderr bytes.Buffer
		if code := (program{stdout: &stdout, stderr: &stderr}).awaitHeld(t.Context(), once); code != lockagent.ExitBusy {
			t.Errorf("exit code %d, want %d", code, lockagent.ExitBusy)
		}
		want := "holdfast-agent gate: mutex \"orders/etl\": waiting (unreachable: no route)\n" +
			"holdfast-agent gate: mutex \"orders/etl\": waiting (busy: not free)\n"
		if diff := cmp.Diff(want, stderr.String()); diff != "" {
			t.Errorf("stderr (-want +got):\n%s", diff)
		}
	})
}

func TestGateEndsWithItsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, term := context.WithTimeout(t.Context(), time.Second)
		defer term()
		begin := time.Now()
		once := func() (lockagent.State, error) {
			time.Sleep(time.Minute)
			return lockagent.State{}, nil
		}
		var stdout, stderr bytes.Buffer
		code := (program{stdout: &stdout, stderr: &stderr}).awaitHeld(ctx, once)
		if took := time.Since(begin); code != lockagent.ExitBusy || took != time.Second {
			t.Errorf("ended with %d after %v, want %d at TERM", code, took, lockagent.ExitBusy)
		}
		time.Sleep(time.Minute) // for the question that nobody waits for
	})
}
