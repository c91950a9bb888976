package lockagent

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// asking is an exec probe's process and the agent that it asks, in virtual time.
type asking struct {
	agent  *liveSubject
	conn   net.Conn // the process' end
	probes execProbes
	end    context.CancelFunc // the agent's
}

// liveSubject counts what it was asked, and answers by the time since it began.
type liveSubject struct {
	*fakeSubject
	live  func(at time.Duration) error
	begun time.Time
	asked int
}

func (s *liveSubject) Live() error {
	s.asked++
	return s.live(time.Since(s.begun))
}

func well(time.Duration) error { return nil }

func newAsking(t *testing.T, live func(at time.Duration) error) *asking {
	ctx, end := context.WithCancel(t.Context())
	process, agent := net.Pipe()
	a := &asking{agent: &liveSubject{fakeSubject: newFakeSubject(), live: live, begun: time.Now()}, conn: process, end: end}
	a.probes.agent = a.agent
	a.probes.open.Go(func() { a.probes.talk(ctx, agent) })
	t.Cleanup(func() {
		_ = process.Close()
		end()
		a.probes.open.Wait()
	})
	return a
}

// ask is what the process does, and how long it takes.
func (a *asking) ask(lasting time.Duration) (time.Duration, error) {
	begin := time.Now()
	err := askProbe(a.conn, lasting, 2*time.Second)
	if err == nil {
		say(a.conn, probeBye)
	}
	_ = a.conn.Close()
	a.probes.open.Wait()
	return time.Since(begin), err
}

// A probe lasts as long as the agent is well, and asks as often as one over HTTP.
func TestAnExecProbeLastsWhileTheAgentIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, well)
		took, err := a.ask(30 * time.Second)
		if err != nil || took != 30*time.Second {
			t.Errorf("it ended after %s with %v, want 30s and no error", took, err)
		}
		if a.agent.asked != 16 || a.agent.probed != 16 || a.agent.broken != 0 {
			t.Errorf("asked %d times, noted %d good answers and %d broken probes; want 16, 16, 0", a.agent.asked, a.agent.probed, a.agent.broken)
		}
	})
}

// What the kubelet will take for a failure, the agent must not take for an answer
// that has arrived.
func TestAnExecProbeThatFailsEndsAtOnceAndIsNoted(t *testing.T) {
	for name, tc := range map[string]struct {
		live     func(at time.Duration) error
		want     string
		wantTook time.Duration
	}{
		"the agent has stalled": {func(at time.Duration) error {
			if at > 9*time.Second {
				return errors.New("no sign of life for 3s")
			}
			return nil
		}, "no sign of life for 3s", 10 * time.Second},
		"the agent is frozen, and wakes": {func(at time.Duration) error {
			if at > 9*time.Second {
				time.Sleep(10 * time.Second)
			}
			return nil
		}, "no answer: ", 20 * time.Second}, // it asked at 10 s, and gave up at 11 s
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsking(t, tc.live)
				took, err := a.ask(30 * time.Second)
				if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
					t.Errorf("it ended with %v, want %q", err, tc.want)
				}
				if took != tc.wantTook || a.agent.broken != 1 {
					t.Errorf("%d broken probes noted after %s, want 1 after %s", a.agent.broken, took, tc.wantTook)
				}
			})
		})
	}
}

// Killed by the runtime for its time-out, or for its memory, it cannot say bye.
func TestAKilledExecProbeIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, well)
		time.AfterFunc(5*time.Second, func() { _ = a.conn.Close() })
		_, err := a.ask(30 * time.Second)
		if err == nil || a.agent.probed != 3 || a.agent.broken != 1 {
			t.Errorf("%v; noted %d good answers and %d broken probes, want 3 and 1", err, a.agent.probed, a.agent.broken)
		}
	})
}

// The end of the pod is not the probe's failure: people read its events.
func TestAnExecProbeEndsWellWithTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, well)
		time.AfterFunc(5*time.Second, a.end)
		took, err := a.ask(30 * time.Second)
		if err != nil || took != 5*time.Second || a.agent.broken != 0 {
			t.Errorf("it ended after %s with %v, %d broken; want 5s, no error, 0", took, err, a.agent.broken)
		}
	})
}

func TestAnExecProbeForTheStartAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, func(time.Duration) error { return errors.New("stalled") })
		took, err := a.ask(0)
		if err != nil || took != 0 || a.agent.asked+a.agent.probed+a.agent.broken != 0 {
			t.Errorf("it ended after %s with %v, and noted something", took, err)
		}
	})
}
