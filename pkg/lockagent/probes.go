package lockagent

import (
	"io"
	"net/http"
	"strings"
)

// newProbes answers the kubelet on the pod's address, where any other pod can
// ask too: hence nothing is told but yes, no and counters.
func newProbes(agent subject) http.Handler {
	return bodiless(routes{
		"/startz":  {http.MethodGet, serveStart},
		"/livez":   {http.MethodGet, serveLiveness(agent)},
		"/metrics": {http.MethodGet, serveMetrics(agent)},
	})
}

// serveStart says that the agent is up. It is not the gate: a kubelet that is
// restarted takes every container with a startup probe for started
// (kubernetes#142305), so what holds the app back is a container that waits.
func serveStart(w http.ResponseWriter, _ *http.Request) { writeOK(w) }

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
