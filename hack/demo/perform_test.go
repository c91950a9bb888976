package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lives makes the journal of apps that start and end in the given order.
func lives(events ...event) *journal {
	j := newJournal(nil)
	for _, e := range events {
		e.lock = semaphoreLock.resource
		j.record(e)
	}
	return j
}

func starts(pod string, token int64) event { return event{what: appStarted, pod: pod, token: token} }
func ends(pod string) event                { return event{what: appEnded, pod: pod} }

func TestJudge(t *testing.T) {
	cases := map[string]struct {
		journal *journal
		whole   bool
		wantBad bool
	}{
		"as many at once as may": {
			journal: lives(starts("a", 1), starts("b", 2), ends("a"), starts("c", 3), ends("b"), ends("c")), whole: true,
		},
		"one too many": {
			journal: lives(starts("a", 1), starts("b", 2), starts("c", 3), ends("a"), ends("b"), ends("c")), whole: true, wantBad: true,
		},
		"one too many, in a play that broke off": {
			journal: lives(starts("a", 1), starts("b", 2), starts("c", 3)), wantBad: true,
		},
		"a token that goes back": {
			journal: lives(starts("a", 3), starts("b", 2), ends("a"), ends("b"), starts("c", 1)), whole: true, wantBad: true,
		},
		"the limit was never reached, which proves nothing": {
			journal: lives(starts("a", 1), ends("a"), starts("b", 2), ends("b")), whole: true, wantBad: true,
		},
		"the limit was not reached before the play broke off": {
			journal: lives(starts("a", 1), ends("a")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &demo{journal: tc.journal, locks: []lock{semaphoreLock}}
			if err := d.judge(tc.whole); (err != nil) != tc.wantBad {
				t.Errorf("judge: %v, want an error: %t", err, tc.wantBad)
			}
		})
	}
}

func TestCompareFences(t *testing.T) {
	w, client := embedded(t)
	client.Set(t.Context(), semaphoreLock.key()+":fence", "7", 0)
	cases := map[string]struct {
		journal *journal
		wantErr string
	}{
		"the last token is an app's":                       {journal: lives(starts("a", 6), starts("b", 7))},
		"the last token was given to one that did not run": {journal: lives(starts("a", 6))},
		"an app has one that Redis has never given": {
			journal: lives(starts("a", 6), starts("b", 8)),
			wantErr: `lock "demo/cap": b had the fencing token 8, but the last one in Redis is 7`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &demo{journal: tc.journal, locks: []lock{semaphoreLock}, witness: w}
			if diff := cmp.Diff(tc.wantErr, errorText(d.compareFences(t.Context()))); diff != "" {
				t.Errorf("compareFences (-want +got):\n%s", diff)
			}
		})
	}
}
