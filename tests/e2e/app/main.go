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
//	TIME release        it asks its agent to give the lock back
//	TIME end CODE       the app ends by itself
package main

import (
	"cmp"
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

const (
	folder = "/journal"
	tick   = 10 * time.Millisecond
)

// app is what the flags say.
type app struct {
	lock, name     string
	onTerm         string
	run            time.Duration
	until, release string // files in folder
	then           string
	exit, failures int
	serve          string
}

func main() {
	var a app
	flag.StringVar(&a.lock, "lock", cmp.Or(os.Getenv("LOCK"), "lock"), "which `lock` the app believes to run under")
	flag.StringVar(&a.name, "name", "app", "`name` of this process within its pod")
	flag.StringVar(&a.onTerm, "on-term", "end", "what TERM does: end, ignore, or a `duration` to go on for")
	flag.DurationVar(&a.run, "run", 0, "end after this `time`; 0 is never")
	flag.StringVar(&a.until, "until", "", "end once this `file` is there, beside the journals")
	flag.StringVar(&a.release, "release", "", "give the lock back once this `file` is there, and run on")
	flag.StringVar(&a.then, "then", "", "make this `file` at the end")
	flag.IntVar(&a.exit, "exit", 0, "exit `code`")
	flag.IntVar(&a.failures, "failures", 0, "how many of the pod's first `runs` end with exit code 1")
	flag.StringVar(&a.serve, "serve", "", "answer every HTTP request at this `address` with 200")
	ask := flag.String("ask", "", "print what the agent's socket answers to a GET of this `path`, and end")
	flag.Parse()
	if *ask != "" {
		os.Exit(askAgent(*ask))
	}

	if a.earlierRuns() < a.failures {
		a.exit = 1
	}
	if a.serve != "" {
		go answer(a.serve)
	}
	os.Exit(a.live(open(fmt.Sprintf("%s~%s~%s~%d", a.lock, os.Getenv("HOSTNAME"), a.name, boot()))))
}

// live is the app's life. It returns the exit code.
func (a app) live(j *journal) int {
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
			switch linger, err := time.ParseDuration(a.onTerm); {
			case a.onTerm == "end":
				return a.end(j, 0)
			case err == nil:
				a.run = boot() - begin + linger
			}
		case <-ticks.C:
			j.alive()
			if now := held(); now != last {
				j.write("held", now)
				last = now
			}
		}
		if a.release != "" && there(a.release) {
			a.release = ""
			j.write("release", "")
			release(j)
		}
		if a.run > 0 && boot()-begin >= a.run || a.until != "" && there(a.until) {
			return a.end(j, a.exit)
		}
	}
}

// end is the last of the journal, and then whatever waits for it may go on.
func (a app) end(j *journal, code int) int {
	j.write("end", fmt.Sprint(code))
	if a.then != "" {
		if err := os.WriteFile(filepath.Join(folder, a.then), nil, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return code
}

func there(file string) bool {
	_, err := os.Stat(filepath.Join(folder, file))
	return err == nil
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
func (a app) earlierRuns() int {
	pod := os.Getenv("HOSTNAME")
	if i := strings.LastIndex(pod, "-"); i > 0 {
		pod = pod[:i]
	}
	files, _ := filepath.Glob(fmt.Sprintf("%s/%s~%s*~%s~*", folder, a.lock, pod, a.name))
	return len(files)
}

func boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
