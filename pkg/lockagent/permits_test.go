package lockagent_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// argo-workflows#12194: a changed limit was ignored. Here the smaller one counts, and
// who waits for it is told so, once, until it no longer does.
func TestCaseB30DifferingPermitsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memstore.NewServer()
		holder := memstore.NewStore(server, agentenv.Semaphore, "orders/etl")
		lower := lockagent.Claim{Owner: "lower", Permits: 1, TTL: 2 * time.Hour}
		if _, err := holder.Acquire(t.Context(), lower); err != nil {
			t.Fatal(err)
		}
		p := newPod(t, server, permits(3)).init().start()
		sleep(time.Hour)
		p.wantPhase(lockagent.Waiting)
		got := p.state().Error
		if got == nil || got.Code != lockagent.CodePermitsDiffer || !strings.Contains(got.Message, "3 permits") || !strings.Contains(got.Message, "has 1") {
			t.Errorf("problem = %+v, want code %s with both numbers", got, lockagent.CodePermitsDiffer)
		}
		if got := p.log.count("permits of this lock differ"); got != 1 {
			t.Errorf("it was logged %d times in an hour, want once", got)
		}

		if _, err := holder.Release(t.Context(), lower); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.wantPhase(lockagent.Holding)
		if got := p.state().Error; got != nil {
			t.Errorf("problem while holding = %+v, want none", got)
		}
	})
}
