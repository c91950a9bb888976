package revisions

import "github.com/prometheus/client_golang/prometheus"

// Metrics tells how the publishing goes.
type Metrics struct {
	leader    prometheus.Gauge
	published prometheus.Counter
	failures  prometheus.Counter
}

// NewMetrics registers with r, and panics if r has them already.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		leader: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "holdfast_revisions_leader",
			Help: "1 if this replica publishes the revisions of ReplicaSets, else 0.",
		}),
		published: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "holdfast_revisions_published_total",
			Help: "Revisions of ReplicaSets written to Redis, those written again included.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "holdfast_revisions_failures_total",
			Help: "Revisions of ReplicaSets that could not be written to Redis; each is tried again.",
		}),
	}
	r.MustRegister(m.leader, m.published, m.failures)
	return m
}
