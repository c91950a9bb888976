package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// The exit codes of check.
const (
	checkHeld    = 0
	checkNotHeld = 1
	checkError   = 2
)

const (
	answerWithin  = 5 * time.Second // beyond the wait; a frozen agent is an error
	longestAnswer = 64 << 10
)

// check asks the running agent, over its socket, whether the lock is held; with
// --wait it gives it that long to become so. It prints one line.
func check(p program) int {
	flags := flag.NewFlagSet("holdfast-agent check", flag.ContinueOnError)
	flags.SetOutput(p.stderr)
	wait := flags.Duration("wait", 0, "how long to wait for the lock")
	if err := flags.Parse(p.args); err != nil {
		return checkError
	}
	if flags.NArg() > 0 || *wait < 0 {
		return p.fail(errors.New("check takes --wait DURATION, not below zero, and nothing else"))
	}
	socket := p.socket()
	st, err := ask(func(wait time.Duration) (lockagent.State, error) {
		return askOnce(socket, http.MethodGet, "/v1/held", nil, wait)
	}, *wait)
	if err != nil {
		return p.fail(err)
	}
	_, _ = fmt.Fprintln(p.stdout, line(st))
	if st.Held {
		return checkHeld
	}
	return checkNotHeld
}

func (p program) socket() string {
	dir, _ := p.lookup(agentenv.DirVar)
	if dir == "" {
		dir = agentenv.Default().Dir
	}
	return filepath.Join(dir, agentenv.SocketName)
}

// ask long-polls until the lock is held or wait is over. The API answers within
// a minute, so a longer wait takes several questions.
func ask(once func(time.Duration) (lockagent.State, error), wait time.Duration) (lockagent.State, error) {
	end := time.Now().Add(wait)
	for {
		left := max(0, time.Until(end))
		st, err := once(min(left, time.Minute))
		if err != nil || st.Held || left <= time.Minute {
			return st, err
		}
	}
}

// askOnce speaks HTTP over a connection of its own: http.Client would make the
// program, which has no other use for one, larger by a megabyte. The answer may
// take wait, which goes with the query.
func askOnce(socket, method, path string, query url.Values, wait time.Duration) (lockagent.State, error) {
	var st lockagent.State
	conn, err := net.DialTimeout("unix", socket, answerWithin)
	if err != nil {
		return st, fmt.Errorf("no agent answers; is one running, with %s=%s? %w", agentenv.DirVar, filepath.Dir(socket), err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(wait + answerWithin)); err != nil {
		return st, err
	}
	params := url.Values{"wait": {wait.String()}}
	maps.Copy(params, query)
	req, err := http.NewRequest(method, "http://localhost"+path+"?"+params.Encode(), nil)
	if err != nil {
		return st, err
	}
	if err := req.Write(conn); err != nil {
		return st, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return st, fmt.Errorf("no answer from %s: %w", socket, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return st, fmt.Errorf("%s answered %s", socket, resp.Status)
	}
	return st, json.NewDecoder(io.LimitReader(resp.Body, longestAnswer)).Decode(&st)
}

// line tells the state to people.
func line(st lockagent.State) string {
	s := fmt.Sprintf("%s %q: %s", st.Kind, st.Resource, st.State)
	switch {
	case st.Held:
		s += fmt.Sprintf(", token %d", st.Token)
	case st.Position > 0:
		s += fmt.Sprintf(", position %d of %d", st.Position, st.Waiters)
	}
	if st.Error != nil {
		s += fmt.Sprintf(" (%s: %s)", st.Error.Code, st.Error.Message)
	}
	return s
}
