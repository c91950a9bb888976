package lockagent

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// fakeSubject is an agent without a loop.
type fakeSubject struct {
	status     *Status
	metrics    *Metrics
	clock      *handClock
	releaseErr error
	liveErr    error
	attemptErr error
	gates      []string // that have asked
	probed     int
	broken     int
}

func newFakeSubject() *fakeSubject {
	clock := &handClock{}
	s := NewStatus(agentenv.Config{Kind: agentenv.Mutex, Resource: "orders/etl", Margin: 6 * time.Second}, clock)
	return &fakeSubject{status: s, metrics: NewMetrics(s), clock: clock}
}

func (f *fakeSubject) Status() *Status               { return f.status }
func (f *fakeSubject) Metrics() *Metrics             { return f.metrics }
func (f *fakeSubject) Release(context.Context) error { return f.releaseErr }
func (f *fakeSubject) Attempt(_ context.Context, gate string) error {
	f.gates = append(f.gates, gate)
	return f.attemptErr
}
func (f *fakeSubject) Live() error  { return f.liveErr }
func (f *fakeSubject) Probed()      { f.probed++ }
func (f *fakeSubject) ProbeBroken() { f.broken++ }

func call(h http.Handler, method, target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost:8650"+target, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// wantProblem checks that an answer is a whole RFC 9457 problem.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, detail string) {
	t.Helper()
	var got problem
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	want := problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: got.Detail}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problem (-want +got):\n%s", diff)
	}
	if w.Code != status || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("answer is %d %q, want %d application/problem+json", w.Code, w.Header().Get("Content-Type"), status)
	}
	if !strings.Contains(got.Detail, detail) {
		t.Errorf("detail = %q, want it to have %q", got.Detail, detail)
	}
}

func stateOf(t *testing.T, w *httptest.ResponseRecorder) State {
	t.Helper()
	var st State
	if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	return st
}

func TestAPITellsTheState(t *testing.T) {
	agent := newFakeSubject()
	h := newAPI(agent)
	agent.status.update(func(st *State, _ *lease) { st.Position, st.Waiters = 2, 3 })
	for path, want := range map[string]int{"/v1/state": 200, "/v1/held": 503} {
		w := call(h, "GET", path)
		if st := stateOf(t, w); w.Code != want || st.State != Waiting || st.Position != 2 {
			t.Errorf("%s while waiting = %d %s, want %d and position 2", path, w.Code, w.Body, want)
		}
	}

	hold(agent.status, 1777863721500001, 30*time.Second)
	for _, path := range []string{"/v1/state", "/v1/held"} {
		w := call(h, "GET", path)
		if st := stateOf(t, w); w.Code != 200 || !st.Held || st.Token != 1777863721500001 {
			t.Errorf("%s while holding = %d %s, want 200 and the token", path, w.Code, w.Body)
		}
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s has Cache-Control %q, want no-store", path, got)
		}
	}
}

// An old leader must not show as one only because nobody has said otherwise:
// here the loop says nothing more once the hold has begun (contrib#2933).
func TestCaseB10HeldIsReadOffTheClock(t *testing.T) {
	agent := newFakeSubject()
	h := newAPI(agent)
	hold(agent.status, 7, 30*time.Second)
	for name, tc := range map[string]struct {
		boot time.Duration
		want int
	}{
		"just before deadline - margin": {24*time.Second - 1, 200},
		"at deadline - margin":          {24 * time.Second, 503},
		"past the deadline":             {31 * time.Second, 503},
		"after a suspended night":       {12 * time.Hour, 503},
	} {
		agent.clock.boot = tc.boot
		if w := call(h, "GET", "/v1/held"); w.Code != tc.want {
			t.Errorf("%s: /v1/held = %d, want %d", name, w.Code, tc.want)
		}
		if st := stateOf(t, call(h, "GET", "/v1/state")); st.Held != (tc.want == 200) {
			t.Errorf("%s: /v1/state says held = %v", name, st.Held)
		}
	}
}

func TestAPIRelease(t *testing.T) {
	agent := newFakeSubject()
	h := newAPI(agent)
	if w := call(h, "POST", "/v1/release"); w.Code != 200 || stateOf(t, w).Resource != "orders/etl" {
		t.Errorf("released = %d %s, want 200 with the state", w.Code, w.Body)
	}
	agent.releaseErr = ErrNotHolding
	wantProblem(t, call(h, "POST", "/v1/release"), 409, "not held")
	agent.releaseErr = &StoreError{Op: "release", Resource: "orders/etl", Code: CodeTimeout, Err: errors.New("no answer in 5s")}
	wantProblem(t, call(h, "POST", "/v1/release"), 503, `not held any more, but the store has not confirmed it: release "orders/etl": no answer in 5s`)
}

func TestAPIRefuses(t *testing.T) {
	h := newAPI(newFakeSubject())
	for name, tc := range map[string]struct {
		method, target string
		wantStatus     int
		wantDetail     string
		wantAllow      string
	}{
		"an unknown path":       {"GET", "/v1/stat", 404, "/livez, /metrics, /v1/attempt, /v1/held, /v1/release, /v1/state", ""},
		"the root":              {"GET", "/", 404, "there is no /;", ""},
		"a slash too many":      {"GET", "/v1/held/", 404, "/v1/held", ""},
		"getting a release":     {"GET", "/v1/release", 405, "takes POST, not GET", "POST"},
		"posting a question":    {"POST", "/v1/held", 405, "takes GET, HEAD, not POST", "GET, HEAD"},
		"deleting the state":    {"DELETE", "/v1/state", 405, "takes GET, HEAD, not DELETE", "GET, HEAD"},
		"a wait without unit":   {"GET", "/v1/held?wait=30", 400, `wait="30"`, ""},
		"a negative wait":       {"GET", "/v1/held?wait=-1s", 400, `wait="-1s"`, ""},
		"too long a wait":       {"GET", "/v1/state?since=waiting&wait=61s", 400, `wait="61s" must be a duration from 0s to 60s`, ""},
		"a wait that overflows": {"GET", "/v1/held?wait=1e9h", 400, `wait="1e9h"`, ""},
		"an attempt of nobody":  {"POST", "/v1/attempt?wait=1s", 400, "gate=ID must name who asks, in at most 64 characters", ""},
		"a name without end":    {"POST", "/v1/attempt?gate=" + strings.Repeat("x", 65), 400, "gate=ID", ""},
		"an attempt's wait":     {"POST", "/v1/attempt?gate=x&wait=61s", 400, `wait="61s"`, ""},
		"getting an attempt":    {"GET", "/v1/attempt?gate=x", 405, "takes POST, not GET", "POST"},
		"a wait since nothing":  {"GET", "/v1/state?wait=3s", 400, "since=STATE", ""},
		"an unknown since":      {"GET", "/v1/state?since=held&wait=3s", 400, `since="held" must be one of waiting, holding, degraded, yielding, lost, released`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := call(h, tc.method, tc.target)
			wantProblem(t, w, tc.wantStatus, tc.wantDetail)
			if got := w.Header().Get("Allow"); got != tc.wantAllow {
				t.Errorf("Allow = %q, want %q", got, tc.wantAllow)
			}
		})
	}
}

// A web page in a browser on the same machine must neither read the state nor
// release the lock.
func TestAPIKeepsWebPagesAway(t *testing.T) {
	h := newAPI(newFakeSubject())
	for name, tc := range map[string]struct {
		method, host string
		header       map[string]string
		want         int
	}{
		"curl by name":                      {"POST", "localhost:8650", nil, 200},
		"curl by address":                   {"POST", "127.0.0.1:8650", nil, 200},
		"curl by the other family":          {"POST", "[::1]:8650", nil, 200},
		"curl without a port":               {"GET", "[::1]", nil, 200},
		"a client of the socket":            {"POST", "localhost", nil, 200},
		"HTTP/1.0 without a host":           {"POST", "", nil, 200},
		"a rebound name releases":           {"POST", "rebind.example:8650", nil, 403},
		"a rebound name reads":              {"GET", "rebind.example:8650", nil, 403},
		"a name that looks like loopback":   {"GET", "127.0.0.1.rebind.example", nil, 403},
		"a name that looks like localhost":  {"GET", "localhost.rebind.example:8650", nil, 403},
		"a form on another page":            {"POST", "127.0.0.1:8650", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"a script of an older browser":      {"POST", "127.0.0.1:8650", map[string]string{"Origin": "https://evil.example"}, 403},
		"a page served from the same place": {"POST", "localhost:3000", map[string]string{"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-origin"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			target := "/v1/state"
			if tc.method == "POST" {
				target = "/v1/release"
			}
			r := httptest.NewRequest(tc.method, target, nil)
			r.Host = tc.host
			for k, v := range tc.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tc.want {
				t.Errorf("answer %d %s, want %d", w.Code, w.Body, tc.want)
			}
		})
	}
}
