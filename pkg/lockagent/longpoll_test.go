package lockagent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// bubbleClock runs with the time of a synctest bubble.
type bubbleClock struct{ start time.Time }

func (c bubbleClock) Boot() time.Duration { return time.Since(c.start) }
func (c bubbleClock) BootID() string      { return "boot-1" }
func (c bubbleClock) Now() time.Time      { return time.Now() }

func newBubbleSubject() *fakeSubject {
	s := NewStatus(agentenv.Config{Kind: agentenv.Mutex, Resource: "orders/etl", Margin: 6 * time.Second}, bubbleClock{time.Now()})
	return &fakeSubject{status: s, metrics: NewMetrics(s)}
}

func TestLongPolls(t *testing.T) {
	acquireAt10s := func(s *Status) { time.Sleep(10 * time.Second); hold(s, 7, 30*time.Second) }
	for name, tc := range map[string]struct {
		target     string
		meanwhile  func(*Status)
		wantStatus int
		wantState  Phase
		wantAfter  time.Duration
	}{
		"held, and it is once acquired":            {"/v1/held?wait=60s", acquireAt10s, 200, Holding, 10 * time.Second},
		"held, but the wait ends first":            {"/v1/held?wait=2s", acquireAt10s, 503, Waiting, 2 * time.Second},
		"held at once, without a wait":             {"/v1/held", acquireAt10s, 503, Waiting, 0},
		"the state changes":                        {"/v1/state?since=waiting&wait=1m", acquireAt10s, 200, Holding, 10 * time.Second},
		"the state has changed before":             {"/v1/state?since=holding&wait=1m", acquireAt10s, 200, Waiting, 0},
		"the state stays":                          {"/v1/state?since=waiting&wait=1m", func(*Status) {}, 200, Waiting, time.Minute},
		"changes of the queue do not end the wait": {"/v1/state?since=waiting&wait=20s", func(s *Status) { s.update(func(st *State, _ *lease) { st.Position = 1 }) }, 200, Waiting, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := newBubbleSubject()
				go tc.meanwhile(agent.status)
				start := time.Now()
				w := call(newAPI(agent), "GET", tc.target)
				if got := time.Since(start); got != tc.wantAfter {
					t.Errorf("answered after %v, want %v", got, tc.wantAfter)
				}
				if st := stateOf(t, w); w.Code != tc.wantStatus || st.State != tc.wantState {
					t.Errorf("answer %d %s, want %d %s", w.Code, st.State, tc.wantStatus, tc.wantState)
				}
				time.Sleep(time.Minute) // for meanwhile to end
			})
		})
	}
}

// A gate, or an app, that hangs up must not leave a request behind.
func TestLongPollEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, hangUp := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/held?wait=60s", nil)
		done := make(chan struct{})
		go func() {
			newAPI(newBubbleSubject()).ServeHTTP(httptest.NewRecorder(), r)
			close(done)
		}()
		synctest.Wait()
		hangUp()
		<-done
	})
}
