package lockagent

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProbes(t *testing.T) {
	agent := newFakeSubject()
	for name, h := range map[string]struct {
		answer func(method, target string) *httptest.ResponseRecorder
	}{
		"api": {func(m, target string) *httptest.ResponseRecorder { return call(newAPI(agent), m, target) }},
		"probes": {func(m, target string) *httptest.ResponseRecorder {
			return call(newProbes(agent), m, target)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			agent.liveErr = nil
			if w := h.answer("GET", "/livez"); w.Code != 200 {
				t.Errorf("/livez of a live agent = %d, want 200", w.Code)
			}
			agent.liveErr = errors.New("the renew loop has not ticked for 4s")
			wantProblem(t, h.answer("GET", "/livez"), 503, "not ticked for 4s")
			w := h.answer("GET", "/metrics")
			if w.Code != 200 || !strings.Contains(w.Body.String(), "holdfast_held 0\n") {
				t.Errorf("/metrics = %d %s", w.Code, w.Body)
			}
			if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4") {
				t.Errorf("/metrics has Content-Type %q", got)
			}
		})
	}
}

// The start probe holds nothing back: a kubelet that is restarted would take it
// for answered.
func TestStartProbeDoesNotWaitForTheLock(t *testing.T) {
	if w := call(newProbes(newFakeSubject()), "GET", "/startz"); w.Code != 200 {
		t.Errorf("/startz without the lock = %d, want 200", w.Code)
	}
}

// What the agent takes for "the kubelet has got its answer" must be that.
func TestOnlyTheKubeletIsNoted(t *testing.T) {
	for name, tc := range map[string]struct {
		answers   func(subject) http.Handler
		userAgent string
		live      error
		want      int
	}{
		"the kubelet":              {probesOf, "kube-probe/1.37", nil, 1},
		"the kubelet is told no":   {probesOf, "kube-probe/1.37", errors.New("stalled"), 0},
		"another pod":              {probesOf, "Blackbox Exporter/0.27", nil, 0},
		"the app, over the socket": {newAPI, "kube-probe/1.37", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			agent := newFakeSubject()
			agent.liveErr = tc.live
			r := httptest.NewRequest(http.MethodGet, "http://localhost/livez", nil)
			r.Header.Set("User-Agent", tc.userAgent)
			tc.answers(agent).ServeHTTP(httptest.NewRecorder(), r)
			if agent.probed != tc.want {
				t.Errorf("noted %d times, want %d", agent.probed, tc.want)
			}
		})
	}
}

func probesOf(agent subject) http.Handler { return newProbes(agent) }

// Any pod can reach the probes: they tell no name, no token, and change nothing.
func TestProbesTellStrangersNothing(t *testing.T) {
	h := newProbes(newFakeSubject())
	for _, target := range []string{"/v1/state", "/v1/held", "/debug/pprof/", "/"} {
		wantProblem(t, call(h, "GET", target), 404, "/livez, /metrics, /startz")
	}
	wantProblem(t, call(h, "POST", "/v1/release"), 404, "/livez, /metrics, /startz")

	r := httptest.NewRequest(http.MethodGet, "/livez", strings.NewReader("a body that never ends"))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	wantProblem(t, w, 413, "no body")
	if got := w.Header().Get("Connection"); got != "close" {
		t.Errorf("Connection = %q, want close", got)
	}
}
