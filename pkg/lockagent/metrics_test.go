package lockagent

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// handClock is a clock that a test moves by hand.
type handClock struct {
	boot time.Duration
}

func (c *handClock) Boot() time.Duration { return c.boot }
func (c *handClock) BootID() string      { return "boot-1" }
func (c *handClock) Now() time.Time      { return time.Time(acquiredAt).Add(c.boot) }

// hold puts s into a hold that the store forgets in ttl.
func hold(s *Status, token int64, ttl time.Duration) {
	s.update(func(st *State, l *lease) {
		st.State = Holding
		*l = lease{token: token, acquiredAt: s.clock.Now(), deadline: s.clock.Boot() + ttl}
	})
}

// values returns the samples by name, and the types that were declared.
func values(m *Metrics) (map[string]string, map[string]string) {
	var b strings.Builder
	m.WritePrometheus(&b)
	samples, types := map[string]string{}, map[string]string{}
	for line := range strings.Lines(b.String()) {
		fields := strings.Fields(line)
		switch {
		case fields[0] != "#":
			samples[fields[0]] = fields[1]
		case fields[1] == "TYPE":
			types[fields[2]] = fields[3]
		}
	}
	return samples, types
}

func TestMetricsFollowTheHold(t *testing.T) {
	clock := &handClock{}
	cfg := agentenv.Config{Kind: agentenv.Mutex, Resource: "orders/etl", Margin: 6 * time.Second}
	s := NewStatus(cfg, clock)
	m := NewMetrics(s)

	gauges := func() map[string]string {
		all, _ := values(m)
		out := map[string]string{}
		for _, name := range []string{"holdfast_held", "holdfast_token", "holdfast_queue_position", "holdfast_hold_expires_seconds", "holdfast_degraded"} {
			out[name] = all[name]
		}
		return out
	}
	wait := map[string]string{"holdfast_held": "0", "holdfast_token": "0", "holdfast_queue_position": "3", "holdfast_hold_expires_seconds": "0", "holdfast_degraded": "0"}
	s.update(func(st *State, _ *lease) { st.Position = 3 })
	if diff := cmp.Diff(wait, gauges()); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}

	s.update(func(st *State, _ *lease) { st.Position = 0 })
	hold(s, 1777863721500001, 30*time.Second)
	clock.boot = 12 * time.Second
	want := map[string]string{"holdfast_held": "1", "holdfast_token": "1777863721500001", "holdfast_queue_position": "0", "holdfast_hold_expires_seconds": "18", "holdfast_degraded": "0"}
	if diff := cmp.Diff(want, gauges()); diff != "" {
		t.Errorf("holding (-want +got):\n%s", diff)
	}

	clock.boot = 25 * time.Second // past the margin, and nobody has said so
	if got := gauges()["holdfast_held"]; got != "0" {
		t.Errorf("holdfast_held past the margin = %s, want 0", got)
	}
}

func TestMetricsAreCountedByNameAndType(t *testing.T) {
	m := NewMetrics(NewStatus(agentenv.Config{}, &handClock{}))
	m.acquisitions.Inc()
	m.storeError(CodeWrongPassword)
	m.storeError(CodeTimeout)
	m.storeError(CodeTimeout)
	m.waited.Update(0.5)
	samples, types := values(m)
	for name, want := range map[string]string{
		"holdfast_acquisitions_total":                        "1",
		"holdfast_losses_total":                              "0",
		`holdfast_store_errors_total{code="timeout"}`:        "2",
		`holdfast_store_errors_total{code="wrong_password"}`: "1",
		`holdfast_wait_seconds_bucket{le="0.1"}`:             "0",
		`holdfast_wait_seconds_bucket{le="1"}`:               "1",
		"holdfast_wait_seconds_count":                        "1",
	} {
		if samples[name] != want {
			t.Errorf("%s = %q, want %q", name, samples[name], want)
		}
	}
	for name, want := range map[string]string{
		"holdfast_acquisitions_total": "counter", "holdfast_store_errors_total": "counter", "holdfast_wait_seconds": "histogram",
	} {
		if types[name] != want {
			t.Errorf("type of %s = %q, want %q", name, types[name], want)
		}
	}
}
