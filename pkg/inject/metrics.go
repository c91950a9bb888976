package inject

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// result is what became of a request.
type result string

const (
	resultInjected  result = "injected"
	resultUntouched result = "untouched" // not a pod of ours
	resultDenied    result = "denied"    // the user's to put right
	resultInvalid   result = "invalid"   // no pod could be read from it
	resultFailed    result = "failed"    // the cluster could not be asked about it
)

// Metrics counts and times admission requests.
type Metrics struct {
	total   *prometheus.CounterVec
	seconds prometheus.Histogram
}

// NewMetrics registers with r, and panics if r has them already.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_admissions_total",
			Help: "Pods that were asked about, by what became of them: injected, untouched, denied, invalid, failed.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "holdfast_admission_seconds",
			Help:    "Time to judge and mutate one pod.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
		}),
	}
	for _, r := range []result{resultInjected, resultUntouched, resultDenied, resultInvalid, resultFailed} {
		m.total.WithLabelValues(string(r)) // so that each is there, as 0, from the start
	}
	r.MustRegister(m.total, m.seconds)
	return m
}

func (m *Metrics) observe(r result, took time.Duration) {
	m.total.WithLabelValues(string(r)).Inc()
	m.seconds.Observe(took.Seconds())
}
