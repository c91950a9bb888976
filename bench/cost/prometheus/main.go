// Command prometheus is http with the usual metrics library.
package main

import (
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-dev/holdfast/bench/cost/stay"
)

var requests = promauto.With(registry).NewCounter(prometheus.CounterOpts{Name: "requests_total"})

// registry has no Go and process collectors, as the agent has none.
var registry = prometheus.NewRegistry()

func main() {
	page := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		requests.Inc()
		page.ServeHTTP(w, r)
	})
	go func() { stay.Fail(http.ListenAndServe(os.Args[1], nil)) }()
	stay.Alive()
}
