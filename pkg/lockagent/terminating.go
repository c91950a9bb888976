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

// terminatingFile is there once the kubelet has begun to end the pod.
const terminatingFile = "terminating"

// terminatingMark is when the kubelet ran the preStop hook.
type terminatingMark struct {
	BootID string        `json:"bootID"`
	Boot   time.Duration `json:"bootNanoseconds"`
}

// MarkTerminating notes that the kubelet has begun to stop the agent's
// container. The preStop hook calls it: the kubelet runs that at the very start
// of a kill, and TERM follows once the hook has ended and, when the whole pod is
// being ended, the app's containers are gone. A nil clock is the machine's.
func MarkTerminating(stateDir string, clock Clock) error {
	if clock == nil {
		clock = SystemClock{}
	}
	b, err := json.Marshal(terminatingMark{BootID: clock.BootID(), Boot: clock.Boot()})
	if err != nil {
		return fmt.Errorf("mark terminating: %w", err)
	}
	if err := writeAtomic(filepath.Join(stateDir, terminatingFile), b, 0o600); err != nil {
		return fmt.Errorf("mark terminating: %w", err)
	}
	return nil
}

// terminatingSince tells when the hook ran; false if it has not. A mark that is
// there but cannot be read counts as set just now, for the kubelet did run the
// hook. Where it cannot even be told whether there is one, there is none: a lost
// hold's app must be stopped.
func (a *Agent) terminatingSince() (hook time.Duration, ok bool) {
	path := filepath.Join(a.cfg.StateDir, terminatingFile)
	if _, err := os.Lstat(path); err != nil {
		return 0, false
	}
	b, err := os.ReadFile(path)
	var mark terminatingMark
	if err != nil || json.Unmarshal(b, &mark) != nil || mark.BootID != a.clock.BootID() {
		return a.clock.Boot(), true
	}
	return mark.Boot, true
}

// terminating tells whether the kubelet has begun to end the pod.
func (a *Agent) terminating() bool {
	_, ok := a.terminatingSince()
	return ok
}

// clearTerminating forgets the hook of an earlier process: this one was started
// after it, so the pod is not ending, or its hook will run again.
func clearTerminating(stateDir string) error {
	err := os.Remove(filepath.Join(stateDir, terminatingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
