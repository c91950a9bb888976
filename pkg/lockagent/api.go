package lockagent

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
)

// subject is what API and probes tell of: an [*Agent].
type subject interface {
	Status() *Status
	Metrics() *Metrics
	Release(context.Context) error
	Attempt(ctx context.Context, gate string) error
	Live() error
	Probed()
	ProbeBroken()
}

// api answers the app, on loopback and on agent.sock. Every answer is computed
// from the clock when it is asked for, also while the loop is blocked.
type api struct{ agent subject }

func newAPI(agent subject) http.Handler {
	a := api{agent}
	return noBrowsers(routes{
		"/v1/state":   {http.MethodGet, a.state},
		"/v1/held":    {http.MethodGet, a.held},
		"/v1/release": {http.MethodPost, a.release},
		"/v1/attempt": {http.MethodPost, a.attempt},
		"/metrics":    {http.MethodGet, serveMetrics(agent)},
		"/livez":      {http.MethodGet, a.live},
	})
}

// state tells everything; with ?since=STATE&wait=30s once the state is another.
func (a api) state(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	wait, err := parseWait(query)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	since, err := parseSince(query)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	st := poll(r.Context(), a.agent.Status(), wait, func(st State) bool { return st.State != since })
	writeState(w, http.StatusOK, st)
}

// held tells by its status code whether the lock is held; with ?wait=30s as soon
// as it is.
func (a api) held(w http.ResponseWriter, r *http.Request) {
	wait, err := parseWait(r.URL.Query())
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	writeHeld(w, poll(r.Context(), a.agent.Status(), wait, isHeld))
}

// attempt is the gate's question, ?gate=ID&wait=60s: has it got the lock, or is it
// to fail? An agent that has given up says so until another gate asks.
func (a api) attempt(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	wait, err := parseWait(query)
	if err == nil {
		err = parseGate(query)
	}
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	if err := a.agent.Attempt(r.Context(), query.Get("gate")); err != nil {
		writeProblem(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	writeHeld(w, poll(r.Context(), a.agent.Status(), wait, isDecided))
}

// live says whether the agent must be restarted.
func (a api) live(w http.ResponseWriter, _ *http.Request) { writeLive(w, a.agent.Live()) }

// release gives the lock back before the app ends. It reads no body.
func (a api) release(w http.ResponseWriter, r *http.Request) {
	err := a.agent.Release(r.Context())
	switch {
	case err == nil:
		writeState(w, http.StatusOK, a.agent.Status().State())
	case errors.Is(err, ErrNotHolding):
		writeProblem(w, http.StatusConflict, "there is nothing to release: the lock is not held")
	default:
		writeProblem(w, http.StatusServiceUnavailable, "not held any more, but the store has not confirmed it: "+err.Error())
	}
}

// writeHeld tells by the status code whether the lock is held.
func writeHeld(w http.ResponseWriter, st State) {
	status := http.StatusOK
	if !st.Held {
		status = http.StatusServiceUnavailable
	}
	writeState(w, status, st)
}

func writeState(w http.ResponseWriter, status int, st State) {
	writeJSON(w, "application/json", status, st)
}

// noBrowsers keeps web pages away, should the agent run where a browser does:
// from a page's own script (its origin is another), and from one whose name was
// made to point at loopback (DNS rebinding), for which the Host is a name.
func noBrowsers(next http.Handler) http.Handler {
	var origin http.CrossOriginProtection
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.Host) {
			writeProblem(w, http.StatusForbidden, "the Host must be localhost or an IP address, not a name that anyone can point here")
			return
		}
		if origin.Check(r) != nil {
			writeProblem(w, http.StatusForbidden, "web pages of other origins may not do this")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLocal tells whether host, with or without a port, cannot be a name that
// resolves as someone else wants. Empty is what HTTP/1.0 sends.
func isLocal(host string) bool {
	if host == "" {
		return true
	}
	name := host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name = host[:i]
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil
}

func isHeld(st State) bool { return st.Held }

func isDecided(st State) bool { return st.Held || st.GaveUp() }
