// Command metrics is http with the agent's metrics library.
package main

import (
	"net/http"
	"os"

	"github.com/VictoriaMetrics/metrics"

	"github.com/holdfast-dev/holdfast/bench/cost/stay"
)

var requests = metrics.NewCounter("requests_total")

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		requests.Inc()
		metrics.WritePrometheus(w, false)
	})
	go func() { stay.Fail(http.ListenAndServe(os.Args[1], nil)) }()
	stay.Alive()
}
