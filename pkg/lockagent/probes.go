package lockagent

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// startWait is how long /startz waits for the hold before it says not yet. The
// kubelet writes a warning event at each such answer, so the wait is long, but
// shorter than the probe's own time-out of 600 s, which would be one too.
const startWait = 590 * time.Second

// newProbes answers the kubelet on the pod's address, where any other pod can
// ask too: hence nothing is told but yes, no and counters.
func newProbes(agent subject, gate agentenv.Gate) http.Handler {
	return bodiless(routes{
		"/startz":  {http.MethodGet, serveStart(agent, gate)},
		"/livez":   {http.MethodGet, serveLiveness(agent)},
		"/metrics": {http.MethodGet, serveMetrics(agent)},
	})
}

// serveStart is the gate: the kubelet starts the next container once it gets a
// 200. Where something else holds the app back, or nothing, it answers at once.
func serveStart(agent subject, gate agentenv.Gate) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if gate == agentenv.GateStart && !poll(r.Context(), agent.Status(), startWait, isHeld).Held {
			writeProblem(w, http.StatusServiceUnavailable, "the lock is not held yet")
			return
		}
		writeOK(w)
	}
}

func isHeld(st State) bool { return st.Held }

// serveLiveness answers the liveness probe. The agent has to know what the
// kubelet was told, whose requests have this name, and not anyone else.
func serveLiveness(agent subject) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := agent.Live()
		if err == nil && strings.HasPrefix(r.UserAgent(), "kube-probe/") {
			agent.Probed()
		}
		writeLive(w, err)
	}
}

// writeLive fails when the agent must be restarted.
func writeLive(w http.ResponseWriter, err error) {
	if err != nil {
		writeProblem(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	writeOK(w)
}

func serveMetrics(agent subject) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		agent.Metrics().WritePrometheus(w)
	}
}

func writeOK(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

// bodiless ends the connection of whoever sends a body, unread: it serves no
// purpose here, and reading it would let strangers keep the agent busy.
func bodiless(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
			writeProblem(w, http.StatusRequestEntityTooLarge, "probes have no body")
			return
		}
		next.ServeHTTP(w, r)
	})
}
