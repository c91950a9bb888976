// Command http is bare with an HTTP server at the address in its first argument.
package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/holdfast-dev/holdfast/bench/cost/stay"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	go http.ListenAndServe(os.Args[1], nil)
	stay.Alive()
}
