package lockagent

import "time"

// backoff spaces attempts: a random pause between base and a bound that doubles
// with each failure up to max, so that a fleet that failed together does not
// come back together.
type backoff struct{ base, max time.Duration }

var (
	waitBackoff  = backoff{base: 100 * time.Millisecond, max: 5 * time.Second}
	renewBackoff = backoff{base: 100 * time.Millisecond, max: 2 * time.Second}
)

// pause is how long to wait after so many failures in a row, from 1.
func (b backoff) pause(failures int, random float64) time.Duration {
	bound := b.base
	for range failures {
		if bound *= 2; bound >= b.max {
			bound = b.max
			break
		}
	}
	return b.base + time.Duration(random*float64(bound-b.base))
}
