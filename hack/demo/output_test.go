package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOutputKeepsWholeLines(t *testing.T) {
	var seen []string
	o := &output{onLine: func(line string) { seen = append(seen, line) }}
	for _, piece := range []string{"fir", "st\nsecond\r\n", "\x1b[2Jthird", "\n", "not yet whole"} {
		_, _ = fmt.Fprint(o, piece)
	}
	want := []string{"first", "second", "[2Jthird"} // what could move the cursor is gone
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if got := o.last(); got != "[2Jthird" {
		t.Errorf("last line %q", got)
	}
	if diff := cmp.Diff("first\nsecond\n[2Jthird\nnot yet whole", o.tail()); diff != "" {
		t.Errorf("tail (-want +got):\n%s", diff)
	}
}

func TestOutputForgetsOldLines(t *testing.T) {
	o := &output{}
	for i := range keptLines + 3 {
		_, _ = fmt.Fprintln(o, i)
	}
	if len(o.lines) != keptLines || o.lines[0] != "3" {
		t.Errorf("kept %d lines, the first is %q; want %d and %q", len(o.lines), o.lines[0], keptLines, "3")
	}
}
