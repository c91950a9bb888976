package lockagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The files that the app may read, in HOLDFAST_DIR.
const (
	heldFile  = "held"       // exists only while the lock is held; the token and a newline
	stateFile = "state.json" // the [State], always there
)

// readable is the mode of the files: the app may run as any user.
const readable fs.FileMode = 0o644

// Files tells the app's containers, through a shared folder, what the API says.
// It is not for concurrent use, for only the loop publishes; but anyone may drop
// the file held.
type Files struct {
	dir   string
	token int64 // what the file held says; 0 if this process has not written it
}

// NewFiles publishes in dir, which must exist.
func NewFiles(dir string) *Files { return &Files{dir: dir} }

// Publish writes st. The file held is the first to go and the last to come, so
// whoever sees it finds a state.json that is no less true. Each call while
// holding touches it, so that its age tells of an agent that has stopped.
//
// An error names the path. Whatever can be written is written nevertheless.
func (f *Files) Publish(st State) error {
	var dropped error
	if !st.Held {
		dropped = f.dropHeld()
	}
	written := f.writeState(st)
	if st.Held {
		return errors.Join(written, f.keepHeld(st.Token))
	}
	return errors.Join(dropped, written)
}

// RemoveHeld removes the file held from dir: for a program that ends before it
// has an agent that knows what became of an earlier one's hold.
func RemoveHeld(dir string) error { return NewFiles(dir).dropHeld() }

func (f *Files) dropHeld() error {
	if err := os.Remove(f.path(heldFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// keepHeld touches the file, or writes it when it is missing or another hold's.
func (f *Files) keepHeld(token int64) error {
	if f.token == token {
		now := time.Now()
		err := os.Chtimes(f.path(heldFile), now, now)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := writeAtomic(f.path(heldFile), append(strconv.AppendInt(nil, token, 10), '\n'), readable); err != nil {
		return err
	}
	f.token = token
	return nil
}

func (f *Files) writeState(st State) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(st); err != nil {
		return err
	}
	return writeAtomic(f.path(stateFile), b.Bytes(), readable)
}

func (f *Files) path(name string) string { return filepath.Join(f.dir, name) }
