package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// screen is where the demo speaks: lines that stay, and below them, on a
// terminal, a table that is drawn again and again.
type screen struct {
	out    io.Writer
	live   bool       // out is a terminal that can be drawn on
	colour bool       // and may be in colour
	width  func() int // of the terminal

	mu    sync.Mutex
	table []string // the latest
	drawn int      // how many lines of it are on the terminal now
}

// newScreen finds out what f can show. NO_COLOR (no-color.org) and TERM=dumb
// are heeded.
func newScreen(f *os.File) *screen {
	fd := int(f.Fd())
	live := term.IsTerminal(fd) && os.Getenv("TERM") != "dumb"
	return &screen{
		out: f, live: live, colour: live && os.Getenv("NO_COLOR") == "",
		width: func() int {
			if w, _, err := term.GetSize(fd); err == nil && w > 0 {
				return w
			}
			return 80
		},
	}
}

// line writes one line, or several, that stay. It may use style's marks.
func (s *screen) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.print(fmt.Sprintf(format, args...))
	s.draw()
}

// show replaces the table. Where it cannot be drawn it waits for settle.
func (s *screen) show(table []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.table = table
	s.draw()
}

// settle leaves the table where it is, as lines that stay. There is none if it
// has nothing but its heading.
func (s *screen) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	if len(s.table) > 1 {
		s.print(strings.Join(s.table, "\n"))
	}
	s.table = nil
}

func (s *screen) print(text string) { _, _ = fmt.Fprintln(s.out, s.paint(text)) }

func (s *screen) erase() {
	if s.drawn > 0 {
		_, _ = fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn) // up, and all below away
		s.drawn = 0
	}
}

func (s *screen) draw() {
	if !s.live || len(s.table) < 2 { // a heading alone says nothing
		return
	}
	for _, row := range s.table {
		s.print(cut(row, s.width()-1)) // a row that wraps could not be erased
	}
	s.drawn = len(s.table)
}

// style is a mark in a text that the screen turns into colour, or into nothing.
// The marks are control characters that no text of ours contains.
type style rune

const (
	plain  style = '\x01' + iota
	bold         // headings
	dim          // what is over
	green        // held
	yellow       // waiting
	red          // failed
)

var codes = map[style]string{
	plain: "\x1b[0m", bold: "\x1b[1m", dim: "\x1b[2m", green: "\x1b[32m", yellow: "\x1b[33m", red: "\x1b[31m",
}

// in marks text.
func (st style) in(text string) string { return string(rune(st)) + text + string(rune(plain)) }

func (s *screen) paint(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch code, isMark := codes[style(r)]; {
		case !isMark:
			b.WriteRune(r)
		case s.colour:
			b.WriteString(code)
		}
	}
	return b.String()
}

// textWidth is the number of columns that text takes, without its marks.
func textWidth(text string) int {
	n := 0
	for _, r := range text {
		if _, isMark := codes[style(r)]; !isMark {
			n++
		}
	}
	return n
}

// cut shortens text to at most width columns, and ends what was marked.
func cut(text string, width int) string {
	if textWidth(text) <= width {
		return text
	}
	var b strings.Builder
	n := 0
	for _, r := range text {
		_, isMark := codes[style(r)]
		if !isMark {
			if n++; n >= width {
				b.WriteString("…")
				break
			}
		}
		b.WriteRune(r)
	}
	return b.String() + string(rune(plain))
}
