package lockagent

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// longestWait is how long a request of the app may wait for a change.
const longestWait = time.Minute

// longestGate is enough for a UUID, and keeps the record small.
const longestGate = 64

// phases are those that ?since= can name.
var phases = []Phase{Waiting, Holding, Degraded, Yielding, Lost, Released}

// parseWait reads ?wait=, 0 if it is not there.
func parseWait(query url.Values) (time.Duration, error) {
	s := query.Get("wait")
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > longestWait {
		return 0, fmt.Errorf("wait=%q must be a duration from 0s to 60s, such as 30s", s)
	}
	return d, nil
}

// parseSince reads ?since=, which goes with ?wait=: without it a change between
// two requests would go unseen.
func parseSince(query url.Values) (Phase, error) {
	since := Phase(query.Get("since"))
	switch {
	case since == "" && query.Get("wait") != "":
		return "", fmt.Errorf("wait needs since=STATE, the state that you know, such as since=%s", Waiting)
	case since != "" && !slices.Contains(phases, since):
		return "", fmt.Errorf("since=%q must be one of %s", string(since), listed(phases))
	}
	return since, nil
}

// parseGate judges ?gate=, the id that a gate has given itself.
func parseGate(query url.Values) error {
	if n := len(query.Get("gate")); n == 0 || n > longestGate {
		return fmt.Errorf("gate=ID must name who asks, in at most %d characters", longestGate)
	}
	return nil
}

func listed(ps []Phase) string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(p))
	}
	return b.String()
}

// poll waits until done is true, ctx ends, or for as long as wait; then it
// returns the state of that moment.
func poll(ctx context.Context, s *Status, wait time.Duration, done func(State) bool) State {
	if wait == 0 {
		return s.State()
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return s.Wait(ctx, done)
}
