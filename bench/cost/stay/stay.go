// Package stay keeps the programs that show what dependencies cost running.
package stay

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Alive returns when the program is told to end. Waiting for a signal keeps the
// signal handler in, which the agent has too.
func Alive() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	<-end
}

// Fail ends the program when a part of it does not work: it would weigh too
// little.
func Fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
