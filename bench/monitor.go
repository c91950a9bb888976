package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// sent is one command that a client sent. Those inside scripts are none.
type sent struct {
	command string // in lower case
	line    string // all of it, as MONITOR shows it
}

// watch returns what clients send for as long as window lasts.
func (s *redisServer) watch(window time.Duration) ([]sent, error) {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(window)); err != nil {
		return nil, err
	}
	var seen []sent
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20) // one line holds a whole command
	for lines.Scan() {
		if command, ok := monitored(lines.Text()); ok {
			seen = append(seen, sent{command, lines.Text()})
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	return seen, nil
}

// monitored reads the command's name from a line of MONITOR, such as
// `1790000000.000001 [0 127.0.0.1:40000] "get" "key"`. Lines of scripts, which
// say "lua" for the address, do not count.
func monitored(line string) (string, bool) {
	_, rest, ok := strings.Cut(line, "[")
	if !ok {
		return "", false // the +OK at the start
	}
	client, command, ok := strings.Cut(rest, `] "`)
	if !ok || strings.HasSuffix(client, " lua") {
		return "", false
	}
	name, _, ok := strings.Cut(command, `"`)
	return strings.ToLower(name), ok
}
