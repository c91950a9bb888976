package lockagent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// epochFile counts how often the pod's containers were started from scratch.
const epochFile = "epoch"

// RaiseEpoch notes that every container of the pod starts anew, and returns the
// new epoch, from 1. The init container holdfast-init calls it: the kubelet runs
// that after each restart of the whole pod, and not when only the agent
// restarts. So an agent that finds its record's epoch unchanged knows that the
// app may be running, and one that finds it changed knows that the app has ended.
func RaiseEpoch(stateDir string) (int64, error) {
	last, err := readEpoch(stateDir)
	if err != nil {
		return 0, fmt.Errorf("raise epoch: %w", err)
	}
	next := last + 1
	path := filepath.Join(stateDir, epochFile)
	if err := writeAtomic(path, fmt.Appendln(nil, next), 0o600); err != nil {
		return 0, fmt.Errorf("raise epoch: %w", err)
	}
	return next, nil
}

// readEpoch returns 0 if the epoch was never raised.
func readEpoch(stateDir string) (int64, error) {
	path := filepath.Join(stateDir, epochFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	epoch, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s holds %q, not a number: delete the pod", path, b)
	}
	return epoch, nil
}
