package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScreen(t *testing.T) {
	play := func(s *screen) {
		s.line("%s", bold.in("heading"))
		s.show([]string{"POD", green.in("a") + " holds"})
		s.line("something happens")
		s.show([]string{"POD", "b holds", "c waits and waits"})
		s.settle()
		s.show([]string{"POD"})
		s.settle()
		s.line("end")
	}
	cases := map[string]struct {
		live, colour bool
		want         []string
	}{
		"not a terminal: plain lines, and a table only where it settles": {
			want: []string{"heading", "something happens", "POD", "b holds", "c waits and waits", "end"},
		},
		"a terminal: each table replaces the last one": {
			live: true,
			want: []string{
				"heading",
				"POD", "a holds",
				"\x1b[2A\x1b[Jsomething happens",
				"POD", "a holds",
				"\x1b[2A\x1b[JPOD", "b holds", "c waits a…", // cut, for a row that wraps cannot be erased
				"\x1b[3A\x1b[JPOD", "b holds", "c waits and waits",
				"end",
			},
		},
		"in colour": {
			live: true, colour: true,
			want: []string{
				"\x1b[1mheading\x1b[0m",
				"POD", "\x1b[32ma\x1b[0m holds",
				"\x1b[2A\x1b[Jsomething happens",
				"POD", "\x1b[32ma\x1b[0m holds",
				"\x1b[2A\x1b[JPOD", "b holds", "c waits a…\x1b[0m",
				"\x1b[3A\x1b[JPOD", "b holds", "c waits and waits",
				"end",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			play(&screen{out: &out, live: tc.live, colour: tc.colour, width: func() int { return 11 }})
			got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
		})
	}
}
