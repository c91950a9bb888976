package main

import (
	"bytes"
	"strings"
	"sync"
	"unicode"
)

// keptLines is how much of a container's output is kept for the case of a failure.
const keptLines = 12

// output is what a container has written, line by line.
type output struct {
	onLine func(string) // called for each whole line; may be nil

	mu      sync.Mutex
	partial []byte
	lines   []string // the last keptLines
}

// Write takes any piece of output. It never fails.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partial = append(o.partial, b...)
	for {
		line, rest, found := bytes.Cut(o.partial, []byte("\n"))
		if !found {
			return len(b), nil
		}
		o.add(strings.Map(printable, string(line)))
		o.partial = rest
	}
}

// printable keeps an app's control characters off the screen.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return -1
}

func (o *output) add(line string) {
	if len(o.lines) == keptLines {
		o.lines = o.lines[1:]
	}
	o.lines = append(o.lines, line)
	if o.onLine != nil {
		o.onLine(line)
	}
}

// last is the latest whole line; empty if there is none.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lines) == 0 {
		return ""
	}
	return o.lines[len(o.lines)-1]
}

// tail is what was kept, as one text.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(append(o.lines[:len(o.lines):len(o.lines)], string(o.partial)), "\n")
}
