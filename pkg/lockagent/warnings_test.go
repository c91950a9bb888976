package lockagent_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// warned is a store whose server is not as it should be.
type warned struct {
	*memstore.Store
	warnings atomic.Pointer[[]lockagent.Problem]
}

func (w *warned) Warnings() []lockagent.Problem { return *w.warnings.Load() }

func TestWarningsOfTheStoreAreShownAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, memstore.NewServer()).init()
		want := []lockagent.Problem{{Code: lockagent.CodeEviction, Message: "it evicts"}}
		store := &warned{Store: p.store}
		store.warnings.Store(&want)
		p.over = store
		p.start()
		sleep(time.Minute)
		p.wantPhase(lockagent.Holding)
		if diff := cmp.Diff(want, p.state().Warnings); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
		if got := p.log.count("the store is not as it should be"); got != 1 {
			t.Errorf("logged %d times, want once", got)
		}
		store.warnings.Store(new([]lockagent.Problem))
		sleep(time.Minute)
		if got := p.state().Warnings; len(got) > 0 {
			t.Errorf("warnings %+v stay after they are over", got)
		}
	})
}
