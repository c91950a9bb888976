package lockagent

import (
	"fmt"
	"io"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// waitBuckets reach from "was free" to "waited for a night job", in seconds.
var waitBuckets = []float64{0.01, 0.1, 1, 10, 60, 600, 3600, 6 * 3600, 24 * 3600}

// Metrics counts what the agent does. No metric has the lock's name as a label:
// the pod, which every scrape adds, has exactly one lock.
type Metrics struct {
	set *metrics.Set

	acquisitions    *metrics.Counter // holds begun by asking, or by an offer; an adopted hold is not begun anew
	offersConfirmed *metrics.Counter // of these, how many were handed over by the holder before
	adoptions       *metrics.Counter // holds taken over from an earlier process of this agent
	renewals        *metrics.Counter // renewals that the store granted
	renewFailures   *metrics.Counter // renewals that ended in an error; each is tried again until the hold's margin
	lateRenewals    *metrics.Counter // renewals granted later than half the TTL after the one before
	losses          *metrics.Counter // holds that ended before they were released
	yields          *metrics.Counter // holds handed over to a newer revision
	yieldsInVain    *metrics.Counter // apps stopped for a newer revision that was not there any more
	busy            *metrics.Counter // attempts that ended since the lock was not free, with on-busy fail
	waitTimeouts    *metrics.Counter // attempts that ended with the wait-timeout

	waited *metrics.PrometheusHistogram // seconds from queueing to the hold
}

// NewMetrics returns counters at zero, and gauges that are computed from s when
// scraped.
func NewMetrics(s *Status) *Metrics {
	// Without types, dashboards do not offer rate() on a counter. It is a setting
	// of the whole program, which has no other metrics than these.
	metrics.ExposeMetadata(true)
	set := metrics.NewSet()
	m := &Metrics{
		set:             set,
		acquisitions:    set.NewCounter("holdfast_acquisitions_total"),
		offersConfirmed: set.NewCounter("holdfast_offers_confirmed_total"),
		adoptions:       set.NewCounter("holdfast_adoptions_total"),
		renewals:        set.NewCounter("holdfast_renewals_total"),
		renewFailures:   set.NewCounter("holdfast_renew_failures_total"),
		lateRenewals:    set.NewCounter("holdfast_late_renewals_total"),
		losses:          set.NewCounter("holdfast_losses_total"),
		yields:          set.NewCounter("holdfast_yields_total"),
		yieldsInVain:    set.NewCounter("holdfast_yields_in_vain_total"),
		busy:            set.NewCounter("holdfast_busy_total"),
		waitTimeouts:    set.NewCounter("holdfast_wait_timeouts_total"),
		waited:          set.NewPrometheusHistogramExt("holdfast_wait_seconds", waitBuckets),
	}
	m.observe(s)
	return m
}

// storeError counts an error of the store by its code, of which there are few.
func (m *Metrics) storeError(c Code) {
	m.set.GetOrCreateCounter(fmt.Sprintf("holdfast_store_errors_total{code=%q}", string(c))).Inc()
}

// gaveUp counts an attempt that has ended without the lock.
func (m *Metrics) gaveUp(why Code) {
	if why == CodeBusy {
		m.busy.Inc()
		return
	}
	m.waitTimeouts.Inc()
}

// observe adds the gauges that are read off s.
func (m *Metrics) observe(s *Status) {
	gauge := func(name string, value func(State) float64) {
		m.set.NewGauge(name, func() float64 { return value(s.State()) })
	}
	// 1 while the app may believe that it holds the lock, else 0.
	gauge("holdfast_held", func(st State) float64 { return oneIf(st.Held) })
	// 1 while a hold's last renewal has failed, else 0.
	gauge("holdfast_degraded", func(st State) float64 { return oneIf(st.Degraded) })
	// Place in the queue, from 1; 0 when not in it.
	gauge("holdfast_queue_position", func(st State) float64 { return float64(st.Position) })
	// Warnings about the store's server, as in state.json; 0 is as it should be.
	gauge("holdfast_store_warnings", func(st State) float64 { return float64(len(st.Warnings)) })
	// The hold's fencing token, below 2^53 and so exact; 0 without a hold. Over
	// all pods of one lock it must only ever grow.
	gauge("holdfast_token", func(st State) float64 { return float64(st.Token) })
	// Seconds until the store forgets the hold unless it is renewed; 0 without a hold.
	gauge("holdfast_hold_expires_seconds", func(st State) float64 {
		if st.ExpiresAt == nil {
			return 0
		}
		return max(0, time.Time(*st.ExpiresAt).Sub(s.clock.Now()).Seconds())
	})
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// WritePrometheus writes all metrics in the text format that Prometheus scrapes.
func (m *Metrics) WritePrometheus(w io.Writer) { m.set.WritePrometheus(w) }
