package main

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	logBacklog  = 256                    // lines that may wait to be taken
	logPatience = 200 * time.Millisecond // for the last of them, when the program ends
)

// logWriter takes the log's lines without ever waiting: whoever reads a
// container's output may stand still, as when the node's disk is full, and the
// agent has to end in time nevertheless. What cannot wait any longer is dropped,
// and told of.
type logWriter struct {
	done chan struct{} // closed when all is written

	mu      sync.Mutex
	lines   chan []byte // nil: closed
	dropped int         // since the latest line that was taken
}

func newLogWriter(to io.Writer) *logWriter {
	w := &logWriter{done: make(chan struct{}), lines: make(chan []byte, logBacklog)}
	go w.pass(w.lines, to)
	return w
}

// Write never fails.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.lines <- bytes.Clone(line):
	default: // also when closed
		w.dropped++
	}
	return len(line), nil
}

// pass writes the lines until there will be no more.
func (w *logWriter) pass(lines <-chan []byte, to io.Writer) {
	defer close(w.done)
	for line := range lines {
		_, _ = to.Write(line)
		if n := w.takeDropped(); n > 0 {
			slog.New(slog.NewJSONHandler(to, nil)).Warn("lines of this log are missing, for nobody has taken them", "lines", n)
		}
	}
}

func (w *logWriter) takeDropped() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.dropped
	w.dropped = 0
	return n
}

// Close waits for the lines to be written, but not long.
func (w *logWriter) Close() {
	w.mu.Lock()
	if w.lines != nil {
		close(w.lines)
		w.lines = nil
	}
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-time.After(logPatience):
	}
}
