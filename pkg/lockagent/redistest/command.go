package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Do gives the server a command, each of whose words must be free of blanks, and
// fails the test if it is refused.
func (s *Server) Do(tb testing.TB, words ...string) string {
	tb.Helper()
	answer, err := s.Ask(words...)
	if err != nil {
		tb.Fatalf("%s: %s: %v", s.Addr, words[0], err)
	}
	return answer
}

// Ask returns a simple or bulk answer; of a list only the first line.
func (s *Server) Ask(words ...string) (string, error) {
	network, addr := "unix", s.Socket
	if addr == "" {
		network, addr = "tcp", s.Addr
	}
	conn, err := net.DialTimeout(network, addr, time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintf(conn, "%s\r\n", strings.Join(words, " ")); err != nil {
		return "", err
	}
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '-':
		return "", errors.New(rest)
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return "", err
		}
		body := make([]byte, n)
		_, err = io.ReadFull(r, body)
		return string(body), err
	}
	return rest, nil
}

// Await asks again and again until the answer has what is wanted in it.
func (s *Server) Await(tb testing.TB, want string, words ...string) {
	tb.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	answer, err := "", error(nil)
	for deadline := time.After(startWithin); ; {
		if answer, err = s.Ask(words...); err == nil && strings.Contains(answer, want) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("%s: %s does not say %q in time: %q, %v", s.Addr, words[0], want, answer, err)
		}
	}
}
