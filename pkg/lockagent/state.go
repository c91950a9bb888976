package lockagent

import (
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Phase is where the agent is on the way of a lock.
type Phase string

// The phases. Holding and Degraded are the only ones in which Held can be true.
const (
	Waiting  Phase = "waiting"
	Holding  Phase = "holding"
	Degraded Phase = "degraded" // holding, but the last renewal failed
	Yielding Phase = "yielding" // giving the lock to a newer revision
	Lost     Phase = "lost"
	Released Phase = "released"
)

// State is what the app can know, in state.json and GET /v1/state. What does
// not apply is absent. It never holds the owner id, which is a capability.
type State struct {
	Version  int           `json:"version"` // of this format; 1
	Kind     agentenv.Kind `json:"kind"`
	Resource string        `json:"resource"`
	State    Phase         `json:"state"`
	Held     bool          `json:"held"` // computed from the clock when asked
	Degraded bool          `json:"degraded"`

	Token      int64      `json:"token,omitempty"`
	AcquiredAt *Timestamp `json:"acquiredAt,omitempty"`
	ExpiresAt  *Timestamp `json:"expiresAt,omitempty"` // when the store forgets the hold unless it is renewed

	Position int `json:"position,omitempty"` // place in the queue, from 1
	Waiters  int `json:"waiters,omitempty"`  // length of the queue

	Since    Timestamp `json:"since"` // of State
	LastLoss *Loss     `json:"lastLoss,omitempty"`
	Error    *Problem  `json:"error,omitempty"`
	Warnings []Problem `json:"warnings,omitempty"` // what is to be known about the store
}

// GaveUp tells whether the agent has stopped waiting, out of the queue and
// without the lock: Error says why. It waits again when another gate asks.
func (st State) GaveUp() bool { return st.Error != nil && st.Error.Code.gaveUp() }

// Loss tells of a hold that ended before it was released.
type Loss struct {
	At     Timestamp `json:"at"`
	Reason string    `json:"reason"`
	Token  int64     `json:"token"`
}

// Problem is what keeps the agent from what it wants to do now.
type Problem struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Timestamp is a time in UTC with milliseconds, RFC 3339.
type Timestamp time.Time

const timestampLayout = "2006-01-02T15:04:05.000Z"

// MarshalText writes t as RFC 3339 UTC with exactly three decimals.
func (t Timestamp) MarshalText() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, timestampLayout), nil
}

// UnmarshalText reads any RFC 3339 time.
func (t *Timestamp) UnmarshalText(b []byte) error {
	parsed, err := time.Parse(time.RFC3339, string(b))
	if err != nil {
		return err
	}
	*t = Timestamp(parsed.UTC())
	return nil
}
