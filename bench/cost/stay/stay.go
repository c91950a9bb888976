// Package stay keeps the programs that show what dependencies cost running.
package stay

import (
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
