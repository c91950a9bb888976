package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// span is a lifetime in milliseconds after noon; to < 0 means still alive.
func span(pod string, token int64, from, to int) lifetime {
	l := lifetime{pod: pod, lock: "demo/etl", token: token, from: noon.Add(time.Duration(from) * time.Millisecond)}
	if to >= 0 {
		l.to = noon.Add(time.Duration(to) * time.Millisecond)
	}
	return l
}

func TestCheckLimit(t *testing.T) {
	cases := map[string]struct {
		spans   []lifetime
		limit   int
		wantErr string
	}{
		"nobody ran": {limit: 1},
		"one after the other": {
			spans: []lifetime{span("a", 1, 0, 10), span("b", 2, 11, 20), span("c", 3, 21, -1)},
			limit: 1,
		},
		"the next one starts before the last one has ended": {
			spans:   []lifetime{span("a", 1, 0, 10), span("b", 2, 9, 20)},
			limit:   1,
			wantErr: `lock "demo/etl": 2 pods ran at once at 12:00:00.009000, 1 allowed: a, b`,
		},
		"the next one starts in the instant in which the last one ends": {
			spans:   []lifetime{span("a", 1, 0, 10), span("b", 2, 10, 20)},
			limit:   1,
			wantErr: `lock "demo/etl": 2 pods ran at once at 12:00:00.010000, 1 allowed: a, b`,
		},
		"one lives within another": {
			spans:   []lifetime{span("a", 1, 0, 100), span("b", 2, 40, 41)},
			limit:   1,
			wantErr: `lock "demo/etl": 2 pods ran at once at 12:00:00.040000, 1 allowed: a, b`,
		},
		"one that was never seen to end": {
			spans:   []lifetime{span("a", 1, 0, -1), span("b", 2, 5000, 5001)},
			limit:   1,
			wantErr: `lock "demo/etl": 2 pods ran at once at 12:00:05.000000, 1 allowed: a, b`,
		},
		"recorded out of order": {
			spans:   []lifetime{span("b", 2, 9, 20), span("a", 1, 0, 10)},
			limit:   1,
			wantErr: `lock "demo/etl": 2 pods ran at once at 12:00:00.009000, 1 allowed: b, a`,
		},
		"two containers of one pod": {
			spans: []lifetime{span("a", 1, 0, 10), span("a", 1, 1, 10)},
			limit: 1,
		},
		"as many as are allowed": {
			spans: []lifetime{span("a", 1, 0, 10), span("b", 2, 1, 10), span("c", 3, 11, 20)},
			limit: 2,
		},
		"one more than is allowed": {
			spans:   []lifetime{span("a", 1, 0, 10), span("b", 2, 1, 10), span("c", 3, 2, 20)},
			limit:   2,
			wantErr: `lock "demo/etl": 3 pods ran at once at 12:00:00.002000, 2 allowed: a, b, c`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.wantErr, errorText(checkLimit(tc.spans, tc.limit))); diff != "" {
				t.Errorf("checkLimit (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckTokens(t *testing.T) {
	cases := map[string]struct {
		spans   []lifetime
		wantErr string
	}{
		"each greater than the last": {
			spans: []lifetime{span("a", 1, 0, 10), span("b", 2, 11, 20), span("c", 9, 21, -1)},
		},
		"restarted in place, the same hold goes on": {
			spans: []lifetime{span("a", 1, 0, 10), span("a", 1, 11, 20), span("b", 2, 21, 30)},
		},
		"side by side, started in the other order than granted": {
			spans: []lifetime{span("b", 2, 0, 10), span("a", 1, 1, 10)},
		},
		"the next holder's is smaller": {
			spans:   []lifetime{span("a", 5, 0, 10), span("b", 4, 11, 20)},
			wantErr: `lock "demo/etl": fencing token 4 of b is not greater than 5 of a before it`,
		},
		"the next holder's is the same": {
			spans:   []lifetime{span("b", 5, 0, 10), span("a", 5, 11, 20)},
			wantErr: `lock "demo/etl": fencing token 5 of a is not greater than 5 of b before it`,
		},
		"the same side by side": {
			spans:   []lifetime{span("a", 5, 0, 10), span("b", 5, 1, 10)},
			wantErr: `lock "demo/etl": fencing token 5 of b is not greater than 5 of a before it`,
		},
		"a pod's own goes back": {
			spans:   []lifetime{span("a", 5, 0, 10), span("a", 4, 11, 20)},
			wantErr: `lock "demo/etl": fencing token 4 of a is not greater than 5 of a before it`,
		},
		"none at all": {
			spans:   []lifetime{span("a", 0, 0, 10)},
			wantErr: `lock "demo/etl": a ran without a fencing token`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.wantErr, errorText(checkTokens(tc.spans))); diff != "" {
				t.Errorf("checkTokens (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLifetimes(t *testing.T) {
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	events := []event{
		{at: at(0), what: agentStarted, pod: "a", lock: "demo/etl"},
		{at: at(1), what: gateOpened, pod: "a", lock: "demo/etl", token: 7},
		{at: at(2), what: appStarted, pod: "a", lock: "demo/etl", token: 7},
		{at: at(3), what: appStarted, pod: "b", lock: "demo/cap", token: 8},
		{at: at(4), what: appEnded, pod: "a", lock: "demo/etl", token: 7},
		{at: at(5), what: appStarted, pod: "a", lock: "demo/etl", token: 7},
	}
	want := []lifetime{
		{pod: "a", lock: "demo/etl", token: 7, from: at(2), to: at(4)},
		{pod: "b", lock: "demo/cap", token: 8, from: at(3)},
		{pod: "a", lock: "demo/etl", token: 7, from: at(5)},
	}
	got := lifetimes(events)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(lifetime{})); diff != "" {
		t.Errorf("lifetimes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:2], ofLock(got, "demo/cap"), cmp.AllowUnexported(lifetime{})); diff != "" {
		t.Errorf("ofLock (-want +got):\n%s", diff)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
