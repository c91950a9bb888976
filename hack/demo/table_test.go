package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

func TestTable(t *testing.T) {
	expires := lockagent.Timestamp(noon.Add(12340 * time.Millisecond))
	rows := []row{
		{pod: "etl-1", phase: phaseRunning, lastLine: "working", state: &lockagent.State{
			State: lockagent.Holding, Held: true, Token: 1795962756208704, ExpiresAt: &expires,
		}},
		{pod: "etl-2", phase: phaseGate, state: &lockagent.State{State: lockagent.Waiting, Position: 1, Waiters: 2}},
		{pod: "etl-3", phase: phaseGate, state: &lockagent.State{
			State: lockagent.Waiting, Error: &lockagent.Problem{Code: lockagent.CodeUnreachable, Message: "no route"},
		}},
		{pod: "etl-4", phase: phaseRunning, state: &lockagent.State{
			State: lockagent.Degraded, Held: true, Degraded: true, Token: 7, ExpiresAt: &expires,
		}},
		{pod: "etl-5", phase: phaseLost, left: 9 * time.Second, lastLine: "was working"},
		{pod: "a-much-longer-name-6", phase: phaseDone, lastLine: "done"},
	}
	want := strings.Split(strings.Trim(`
   POD                    LOCK                     TOKEN              LEASE LEFT   ITS APP SAYS
   etl-1                  holds                    1795962756208704   12.3 s       working
   etl-2                  waits
   etl-3                  waits: unreachable
   etl-4                  holds, renewal failing   7                  12.3 s
   etl-5                  no power                                    9.0 s        was working
   a-much-longer-name-6   done                                                     done
`, "\n"), "\n")
	uncoloured := &screen{}
	var got []string
	for _, line := range table(rows, noon) {
		got = append(got, uncoloured.paint(line))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
