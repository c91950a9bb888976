// Command http is bare with an HTTP server at the address in its first argument.
package main

import (
	"io"
	"net/http"
	"os"

	"github.com/holdfast-dev/holdfast/bench/cost/stay"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	go func() { stay.Fail(http.ListenAndServe(os.Args[1], nil)) }()
	stay.Alive()
}
