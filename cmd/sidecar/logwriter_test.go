package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// Whoever should read the log does not: a full pipe must not keep a lost hold's
// app from being stopped, nor the pod from ending.
func TestLogThatNobodyReadsKeepsNothingFromEnding(t *testing.T) {
	for name, end := range map[string]func(*process, *redistest.Server) error{
		"the hold is lost": func(_ *process, r *redistest.Server) error { return r.Freeze() },
		"TERM":             func(p *process, _ *redistest.Server) error { return p.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			redis := redistest.Start(t)
			vars := and(variables(t, redis.SocketURL()), "TTL", "3s", "MARGIN", "1s", "POD_UID", "uid-1")
			p := launchTo(t, vars, fullPipe(t))
			p.awaitAPI()
			p.awaitHeld()
			if err := end(p, redis); err != nil {
				t.Fatal(err)
			}
			if code := p.exit(); code != lockagent.ExitLost {
				t.Errorf("exit code %d, want %d", code, lockagent.ExitLost)
			}
		})
	}
}

// fullPipe is one to which not a byte more can be written.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	reader := os.NewFile(uintptr(fds[0]), "reader")
	t.Cleanup(func() { _ = reader.Close() })
	for _, chunk := range [][]byte{make([]byte, 4<<10), {0}} {
		for {
			if _, err := syscall.Write(fds[1], chunk); err != nil {
				break
			}
		}
	}
	if err := syscall.SetNonblock(fds[1], false); err != nil {
		t.Fatal(err)
	}
	writer := os.NewFile(uintptr(fds[1]), "writer")
	t.Cleanup(func() { _ = writer.Close() })
	return writer
}

func TestDroppedLogLinesAreToldOf(t *testing.T) {
	out, in := io.Pipe() // takes nothing until it is read
	w := newLogWriter(in)
	const more = 10
	for i := range 1 + logBacklog + more {
		_, _ = fmt.Fprintf(w, "line %d\n", i)
	}
	go func() {
		w.Close()
		_, _ = fmt.Fprintln(w, "too late")
		_ = in.Close()
	}()
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if lines[0] != "line 0" || !strings.Contains(string(text), "lines of this log are missing") {
		t.Errorf("the log begins %q, and is to say that lines are missing:\n%s", lines[0], text)
	}
	if strings.Contains(string(text), "too late") {
		t.Error("a line after the end was written")
	}
}
