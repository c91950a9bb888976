// The app of the end-to-end tests: it does no work, but keeps a journal of when
// it was alive and what it saw of its lock, by the machine's one boot clock, so
// that apps of several pods can be laid side by side.
//
// Its journal is a file of its own in /journal, named LOCK~POD~NAME~START. The
// first line is the latest time at which it was alive, written over every few
// milliseconds; each further line is an event:
//
//	START start TOKEN   TOKEN is what the file "held" said, or "-"
//	TIME held TOKEN     "held" has changed; "-" when it is gone
//	TIME term           TERM came
//	TIME end CODE       the app ends by itself
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const tick = 10 * time.Millisecond

func main() {
	lock := flag.String("lock", "lock", "which `lock` the app believes to run under")
	name := flag.String("name", "app", "`name` of this process within its pod")
	onTerm := flag.String("on-term", "end", "what TERM does: end, ignore, or a `duration` to go on for")
	run := flag.Duration("run", 0, "end after this `time`; 0 is never")
	failures := flag.Int("failures", 0, "how many of the pod's first `runs` end with exit code 1")
	flag.Parse()

	file := fmt.Sprintf("%s~%s~%s~%d", *lock, os.Getenv("HOSTNAME"), *name, boot())
	earlier := earlierRuns(*lock, *name)
	j := open(file)
	os.Exit(live(j, *onTerm, *run, earlier < *failures))
}

// live is the app's life. It returns the exit code.
func live(j *journal, onTerm string, run time.Duration, failing bool) int {
	begin := boot()
	j.write("start", held())
	terms := make(chan os.Signal, 8)
	signal.Notify(terms, syscall.SIGTERM)
	ticks := time.NewTicker(tick)
	last := held()
	for {
		select {
		case <-terms:
			j.write("term", "")
			switch linger, err := time.ParseDuration(onTerm); {
			case onTerm == "end":
				return j.end(0)
			case err == nil:
				run = boot() - begin + linger
			}
		case <-ticks.C:
			j.alive()
			if now := held(); now != last {
				j.write("held", now)
				last = now
			}
		}
		if run > 0 && boot()-begin >= run {
			if failing {
				return j.end(1)
			}
			return j.end(0)
		}
	}
}

// held is what the agent says, "-" if nothing.
func held() string {
	b, err := os.ReadFile(filepath.Join(os.Getenv("HOLDFAST_DIR"), "held"))
	if err != nil {
		return "-"
	}
	return strings.TrimSpace(string(b))
}

// earlierRuns counts the journals of the same job: pods of one Job share their
// name up to the last dash.
func earlierRuns(lock, name string) int {
	pod := os.Getenv("HOSTNAME")
	if i := strings.LastIndex(pod, "-"); i > 0 {
		pod = pod[:i]
	}
	files, _ := filepath.Glob(fmt.Sprintf("/journal/%s~%s*~%s~*", lock, pod, name))
	return len(files)
}

func boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
