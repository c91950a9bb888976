//go:build e2e

package e2e

import (
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// onHost puts the pod onto its node's network. There its host name is the node's,
// and the journals want to know the pod's.
func onHost(spec *corev1.PodSpec) {
	spec.HostNetwork = true
	spec.Containers[0].Env = []corev1.EnvVar{{Name: "HOSTNAME", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"},
	}}}
}

// Two pods on one node's network, where there is every port only once: one holds,
// one waits, and their apps ask at a socket.
func TestCaseB50TwoPodsOnTheHostsNetwork(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.pod("first", mutex(lockName), onHost)
	s.awaitLives(startWithin, 1)
	s.pod("second", mutex(lockName), onHost)
	s.awaitWaiters(1)
	s.awaitReady("first")

	h := s.mustHold()
	if got, want := s.inside("first", "sh", "-c", `printf %s "$HOLDFAST_URL"`), "unix:///var/run/holdfast/agent.sock"; got != want {
		t.Errorf("HOLDFAST_URL is %q, want %q", got, want)
	}
	if got := s.inside("first", "/bin/app", "-ask", "/v1/held"); !strings.Contains(got, `"token":`+h.tokenText()) {
		t.Errorf("the socket says %q, Redis has token %d", got, h.token)
	}
	for _, port := range []string{"8650", "8651"} {
		if conn, err := net.DialTimeout("tcp", net.JoinHostPort(shared.host, port), time.Second); err == nil {
			_ = conn.Close()
			t.Errorf("something listens at port %s of the node", port)
		}
	}
	s.mustHaveNoWarning("first")
	s.delete("first", -1)
	s.mustHandOver(0)
}
