//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// life is one process of an app, as its own journal tells. Times are of the boot
// clock.
type life struct {
	lock, pod, name string
	start, last     time.Duration // it was alive from start to last, at least
	token           string        // what "held" said at its start, "-" if nothing
	events          []event
}

type event struct {
	at         time.Duration
	what, text string
}

// readLives reads all journals of a folder, the earliest start first. A process
// that has not written all of its first lines yet is left out.
func readLives(dir string) ([]life, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*~*~*~*"))
	if err != nil {
		return nil, err
	}
	var lives []life
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		l, err := parseLife(filepath.Base(file), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(l.events) > 0 {
			lives = append(lives, l)
		}
	}
	slices.SortFunc(lives, func(a, b life) int { return int(a.start - b.start) })
	return lives, nil
}

func parseLife(file, text string) (life, error) {
	names := strings.Split(file, "~")
	l := life{lock: names[0], pod: names[1], name: names[2]}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		ns, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return l, err
		}
		at := time.Duration(ns)
		if i == 0 {
			l.last = at
			continue
		}
		e := event{at: at, what: fields[1]}
		if len(fields) > 2 {
			e.text = fields[2]
		}
		l.events = append(l.events, e)
		l.last = max(l.last, at)
	}
	if len(l.events) > 0 {
		l.start, l.token = l.events[0].at, l.events[0].text
	}
	return l, nil
}

// at is when an event of that kind happened first, 0 if it has not.
func (l life) at(what, text string) time.Duration {
	for _, e := range l.events {
		if e.what == what && (text == "" || e.text == text) {
			return e.at
		}
	}
	return 0
}

func (l life) String() string {
	return fmt.Sprintf("%s/%s %.3f to %.3f token %s %v", l.pod, l.name, l.start.Seconds(), l.last.Seconds(), l.token, l.events[1:])
}

// crowd is the greatest number of pods that were alive at one time under a lock,
// and when.
func crowd(lives []life, lock string) (pods int, at time.Duration) {
	for _, l := range lives {
		if l.lock != lock {
			continue
		}
		together := map[string]bool{}
		for _, other := range lives {
			if other.lock == lock && other.start <= l.start && l.start <= other.last {
				together[other.pod] = true
			}
		}
		if len(together) > pods {
			pods, at = len(together), l.start
		}
	}
	return pods, at
}
