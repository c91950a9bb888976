package main

import (
	"fmt"
	"net/http"
	"os"
)

// answer serves probes, as an agent does, for pods that have none.
func answer(address string) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	if err := http.ListenAndServe(address, ok); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// release gives the lock back early.
func release(j *journal) {
	resp, err := http.Post(os.Getenv("HOLDFAST_URL")+"/v1/release", "", nil)
	if err != nil {
		j.write("refused", fmt.Sprintf("%q", err))
		return
	}
	_ = resp.Body.Close()
	j.write("released", resp.Status)
}
