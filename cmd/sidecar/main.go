// Holdfast-agent is the sidecar that holds a lock for a pod. It is configured by
// HOLDFAST_ variables only; see package agentenv.
package main

import (
	"os"
	"time"
)

func main() {
	os.Exit(dispatch(program{
		args:      os.Args[1:],
		lookup:    os.LookupEnv,
		stdout:    os.Stdout,
		stderr:    os.Stderr,
		errorRest: 10 * time.Second,
	}))
}
