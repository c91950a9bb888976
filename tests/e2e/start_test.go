//go:build e2e

package e2e

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// startWithin bounds what a busy machine needs to start a pod.
const startWithin = 60 * time.Second

// A singleton starts, holds, and its app can read so in all three ways.
func TestASingletonHoldsAndItsAppCanTell(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.deployment("single", mutex(lockName))
	app := s.awaitLives(startWithin, 1)[0]
	h := s.mustHold()

	if app.token != h.tokenText() {
		t.Errorf("the app found token %s at its start, Redis has %d", app.token, h.token)
	}
	if got := s.inside(app.pod, "cat", "/var/run/holdfast/held"); got != h.tokenText()+"\n" {
		t.Errorf("the file held says %q, Redis has %d", got, h.token)
	}
	for _, way := range []struct {
		name    string
		command []string
	}{
		{"state.json", []string{"cat", "/var/run/holdfast/state.json"}},
		{"GET /v1/held", []string{"sh", "-c", `printf 'GET /v1/held HTTP/1.0\r\n\r\n' | nc 127.0.0.1 8650 | sed '1,/^\r$/d'`}},
	} {
		var got struct {
			Kind, Resource, State string
			Held                  bool
			Token                 int64
		}
		text := s.inside(app.pod, way.command...)
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v in %q", way.name, err, text)
			continue
		}
		want := got
		want.Kind, want.Resource, want.State, want.Held, want.Token = "mutex", s.namespace+"/"+lockName, "holding", true, h.token
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", way.name, diff)
		}
	}
	for _, c := range s.get(app.pod).Status.InitContainerStatuses {
		if c.RestartCount > 0 {
			t.Errorf("%s was restarted %d times, want 0", c.Name, c.RestartCount)
		}
	}
	s.awaitReady(app.pod)
}

// awaitReady waits for the pod to be ready.
func (s *trial) awaitReady(pod string) {
	s.t.Helper()
	s.eventually(startWithin, pod+" is ready", func() bool {
		for _, c := range s.get(pod).Status.Conditions {
			if c.Type == corev1.PodReady {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	})
}

// inside runs a command in the app's container.
func (s *trial) inside(pod string, command ...string) string {
	s.t.Helper()
	args := append([]string{"exec", "-n", s.namespace, pod, "-c", "app", "--"}, command...)
	var stderr strings.Builder
	cmd := exec.Command("kubectl", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, &stderr)
	}
	return string(out)
}
