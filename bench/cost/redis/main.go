// Command redis is metrics with go-redis, which asks the Redis of the second
// argument once a second. A third argument "small" sets the buffers of the
// agent, and "insecure" in the fourth trusts any certificate.
package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/bench/cost/stay"
)

var requests = metrics.NewCounter("requests_total")

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		requests.Inc()
		metrics.WritePrometheus(w, false)
	})
	go func() { stay.Fail(http.ListenAndServe(os.Args[1], nil)) }()
	go ask(os.Args[2], os.Args[3:])
	stay.Alive()
}

func ask(url string, how []string) {
	options, err := redis.ParseURL(url)
	if err != nil {
		stay.Fail(err)
	}
	if slices.Contains(how, "small") {
		options.PoolSize, options.ReadBufferSize, options.WriteBufferSize = 2, 1024, 1024
	}
	if slices.Contains(how, "insecure") {
		options.TLSConfig = &tls.Config{InsecureSkipVerify: true}
	}
	client := redis.NewClient(options)
	for ; ; time.Sleep(time.Second) {
		if err := client.Incr(context.Background(), "cost").Err(); err != nil {
			stay.Fail(err)
		}
	}
}
