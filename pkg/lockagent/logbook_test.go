package lockagent_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// logbook keeps what is logged, and can hold up whoever logs.
type logbook struct {
	mu     sync.Mutex
	lines  []string
	holdUp string        // a message: who logs it stands still
	until  chan struct{} // until this is closed
}

func (b *logbook) Enabled(context.Context, slog.Level) bool { return true }

func (b *logbook) WithAttrs([]slog.Attr) slog.Handler { return b }

func (b *logbook) WithGroup(string) slog.Handler { return b }

func (b *logbook) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	b.mu.Lock()
	b.lines = append(b.lines, line)
	wait := b.holdUp != "" && strings.Contains(r.Message, b.holdUp)
	b.mu.Unlock()
	if wait {
		<-b.until
	}
	return nil
}

func (b *logbook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines, "\n")
}

// first is the first line without its attributes.
func (b *logbook) first() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	line, _, _ := strings.Cut(b.lines[0], " at=")
	return line
}

// count is how many lines have message.
func (b *logbook) count(message string) int { return strings.Count(b.String(), message) }

// freezeAt makes whoever logs message stand still until the test ends.
func (b *logbook) freezeAt(t *testing.T, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holdUp, b.until = message, make(chan struct{})
	t.Cleanup(func() { close(b.until) })
}
