package lockagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// recordFile is the agent's memory in the state folder.
const recordFile = "record.json"

// errCorrupt means that a record was there and cannot be read or understood.
var errCorrupt = errors.New("not a record")

// record is what the next process of this agent must know. It is written before
// anything it says can come true: the owner before the first request in its
// name, a shorter deadline before it is asked for.
type record struct {
	Owner  string `json:"owner,omitempty"`  // empty: nothing was ever asked for
	Epoch  int64  `json:"epoch,omitempty"`  // of the pod when this was written
	BootID string `json:"bootID,omitempty"` // Deadline and AdoptedAt mean something only in this boot

	Token      int64         `json:"token,omitempty"` // 0: queued, or the answer was never seen
	AcquiredAt time.Time     `json:"acquiredAt,omitzero"`
	Deadline   time.Duration `json:"deadlineNanoseconds,omitempty"` // boot time
	Lost       bool          `json:"lost,omitempty"`                // this hold is over, and the app has to be stopped for it
	Ending     bool          `json:"ending,omitempty"`              // a request that ends or shortens it may arrive late: this owner must not hold again

	Yield    *Heir         `json:"yield,omitempty"`               // the app has to be stopped, and then the hold is this waiter's
	QueuedAt time.Duration `json:"queuedAtNanoseconds,omitempty"` // boot time; when the wait for the next hold began; 0: there is one
	Opened   bool          `json:"opened,omitempty"`              // since this epoch began the lock was held, so the gate has let the app start
	Gate     string        `json:"gate,omitempty"`                // the latest gate that has asked, by its own id
	GaveUp   Code          `json:"gaveUp,omitempty"`              // this epoch's latest attempt has ended without the lock, and why

	AdoptedAt time.Duration `json:"adoptedAtNanoseconds,omitempty"` // boot time; when an agent last took over from a dead one beside a running app
	LastLoss  *Loss         `json:"lastLoss,omitempty"`             // outlives the hold that it tells of
}

// loadRecord returns the empty record if there is none, and an error that wraps
// errCorrupt if there is one that cannot be read or makes no sense.
func loadRecord(stateDir string) (record, error) {
	path := filepath.Join(stateDir, recordFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		if _, none := os.Lstat(path); none == nil { // there is one, only not for now, as when a node is out of file handles
			err = fmt.Errorf("%w: %w", errCorrupt, err)
		}
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return record{}, fmt.Errorf("%s: %w: %w", path, errCorrupt, err)
	}
	if r.Token != 0 && r.Owner == "" {
		return record{}, fmt.Errorf("%s: %w: a token without an owner", path, errCorrupt)
	}
	return r, nil
}

// save replaces the record. The file is the agent's own: the owner id in it is
// a capability.
func (r record) save(stateDir string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return err
	}
	return writeAtomic(filepath.Join(stateDir, recordFile), b, 0o600)
}

// wiped is the record once its hold is over and nothing depends on it any more.
func (r record) wiped() record {
	return record{
		BootID: r.BootID, QueuedAt: r.QueuedAt, Opened: r.Opened, Gate: r.Gate,
		AdoptedAt: r.AdoptedAt, LastLoss: r.LastLoss,
	}
}

// AppMayRun tells whether an app that was started by a hold may still run: not
// all containers of the pod have been started anew since. In doubt it may.
func AppMayRun(stateDir string) bool {
	rec, err := loadRecord(stateDir)
	epoch, epochErr := readEpoch(stateDir)
	if err != nil || epochErr != nil {
		return true
	}
	return epoch == rec.Epoch && (rec.Token != 0 || rec.Lost)
}
