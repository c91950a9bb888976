package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// lifetime is a span in which an app may have been alive: from just before its
// process was made until after its last process was gone. It is rather too long
// than too short, so an overlap cannot hide in it.
type lifetime struct {
	pod, lock string
	token     int64
	from, to  time.Time // to is zero while the app is alive
}

// lifetimes pairs the starts of apps with their ends. A pod may have several
// apps; each has a span of its own.
func lifetimes(events []event) []lifetime {
	var spans []lifetime
	for _, e := range events {
		switch e.what {
		case appStarted:
			spans = append(spans, lifetime{pod: e.pod, lock: e.lock, token: e.token, from: e.at})
		case appEnded:
			for i := range spans {
				if spans[i].pod == e.pod && spans[i].to.IsZero() {
					spans[i].to = e.at
					break
				}
			}
		}
	}
	return spans
}

// crowd is the largest number of pods whose apps were alive at once.
type crowd struct {
	pods []string // who; empty if there were none
	at   time.Time
}

// largestCrowd looks at each start: a crowd only ever grows there. Spans that
// merely touch count as overlapping.
func largestCrowd(spans []lifetime) crowd {
	var largest crowd
	for _, s := range spans {
		if pods := aliveAt(spans, s.from); len(pods) > len(largest.pods) {
			largest = crowd{pods, s.from}
		}
	}
	return largest
}

// aliveAt names the pods with an app that may be alive at t, each once.
func aliveAt(spans []lifetime, t time.Time) []string {
	var pods []string
	for _, s := range spans {
		begun, over := !s.from.After(t), !s.to.IsZero() && s.to.Before(t)
		if begun && !over && !slices.Contains(pods, s.pod) {
			pods = append(pods, s.pod)
		}
	}
	return pods
}

// checkLimit fails if the apps of more than limit pods were ever alive at once.
func checkLimit(spans []lifetime, limit int) error {
	c := largestCrowd(spans)
	if len(c.pods) <= limit {
		return nil
	}
	return fmt.Errorf("lock %q: %d pods ran at once at %s, %d allowed: %s",
		spans[0].lock, len(c.pods), c.at.Format("15:04:05.000000"), limit, strings.Join(c.pods, ", "))
}

// checkTokens fails unless each hold has one token of its own, greater than that
// of every hold whose app had ended before. The spans are in order of their starts.
func checkTokens(spans []lifetime) error {
	var errs []error
	for i, later := range spans {
		if later.token <= 0 {
			errs = append(errs, fmt.Errorf("lock %q: %s ran without a fencing token", later.lock, later.pod))
		}
		for _, earlier := range spans[:i] {
			if !inOrder(earlier, later) {
				errs = append(errs, fmt.Errorf("lock %q: fencing token %d of %s is not greater than %d of %s before it",
					later.lock, later.token, later.pod, earlier.token, earlier.pod))
			}
		}
	}
	return errors.Join(errs...)
}

// inOrder compares the tokens of two spans. A pod that restarts in place may go
// on with its own hold; of two that ran side by side either may have been first.
func inOrder(earlier, later lifetime) bool {
	switch ended := !earlier.to.IsZero() && earlier.to.Before(later.from); {
	case earlier.pod == later.pod:
		return earlier.token <= later.token
	case ended:
		return earlier.token < later.token
	default:
		return earlier.token != later.token
	}
}

// ofLock keeps the spans of one lock.
func ofLock(spans []lifetime, lock string) []lifetime {
	return slices.DeleteFunc(slices.Clone(spans), func(s lifetime) bool { return s.lock != lock })
}
