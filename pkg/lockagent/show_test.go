package lockagent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// The gate opens as soon as the status says so, and an app's first look may be
// at the file.
func TestFilesTellOfAHoldBeforeTheStatusAndOfItsEndAfter(t *testing.T) {
	cfg := agentenv.Default()
	cfg.Kind, cfg.Resource, cfg.Margin, cfg.Dir = agentenv.Mutex, "orders/etl", cfg.TTL/5, t.TempDir()
	l := newLoop(New(cfg, nil, Options{}), t.Context())
	held := filepath.Join(cfg.Dir, heldFile)

	// change makes the change, and looks at the file when it comes to the status.
	change := func(to Phase, le lease, wantFile bool) func(*State, *lease) {
		return func(s *State, current *lease) {
			_, err := os.Stat(held)
			if isStatus := s == &l.status.base; isStatus && (err == nil) != wantFile {
				t.Errorf("as the status becomes %q, the file held is there: %t, want %t", to, err == nil, wantFile)
			}
			s.State, *current = to, le
		}
	}
	l.show(change(Holding, lease{token: 7, deadline: SystemClock{}.Boot() + time.Minute}, true))
	l.show(change(Lost, lease{}, true))
	if _, err := os.Stat(held); err == nil {
		t.Error("the file held is still there after the loss")
	}
}
