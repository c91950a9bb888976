//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What a mesh does to a pod's network before its proxy is up: whatever comes to the
// pod goes to a port where nobody listens yet, and so does whatever leaves it but
// the proxy's own.
const (
	proxyInbound  = "15006"
	proxyOutbound = "15001"
	proxyUser     = 1337
)

// redirected is an init container like istio-init and linkerd-init.
func redirected(rules ...string) corev1.Container {
	return corev1.Container{
		Name: "redirect", Image: appImage, ImagePullPolicy: corev1.PullNever,
		Command: []string{"sh", "-ec", "iptables -t nat " + strings.Join(rules, "\niptables -t nat ")},
		SecurityContext: &corev1.SecurityContext{
			RunAsUser: new(int64(0)), Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}},
		},
	}
}

const inbound = "-A PREROUTING -p tcp -j REDIRECT --to-ports " + proxyInbound

// needIPTables skips the test where the image has none: hack/e2e takes the machine's.
func needIPTables(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("iptables"); err != nil {
		t.Skip("no iptables on this machine: apt-get install iptables")
	}
}

// Where the kubelet's requests do not get through, HTTP probes keep the app from
// ever starting, and exec probes do not.
func TestProbesBehindARedirection(t *testing.T) {
	t.Parallel()
	needIPTables(t)
	redirect := func(spec *corev1.PodSpec) { spec.InitContainers = []corev1.Container{redirected(inbound)} }
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		s := begin(t)
		pod := s.pod("pod", mutex(lockName, "order", "last", "probe", "http"), redirect)
		s.eventually(2*time.Minute, "the kubelet has killed the agent for its startup probe", func() bool {
			return status(s.get("pod"), agentName).RestartCount > 0
		})
		if n := len(s.lives()); n > 0 {
			t.Errorf("the app of %s has started %d times: the redirection does nothing, and this test proves nothing", pod.Name, n)
		}
	})
	t.Run("exec", func(t *testing.T) {
		t.Parallel()
		s := begin(t)
		s.pod("pod", mutex(lockName, "order", "last", "probe", "exec"), redirect)
		s.awaitLives(startWithin, 1)
		s.awaitReady("pod")
		before := s.mustHold()
		pause(15 * time.Second) // longer than three probes that fail take
		s.mustBeSame(before)
		s.mustHaveNoWarning("pod")
	})
}

// A mesh's proxy that is a native sidecar, slow to come up: the agent comes after
// it, finds by itself that its probes must be exec, and reaches Redis through it.
func TestAMeshWhoseProxyComesFirst(t *testing.T) {
	t.Parallel()
	needIPTables(t)
	s := begin(t)
	host, port, _ := strings.Cut(strings.TrimPrefix(s.link.url(), "redis://"), ":")
	outbound := fmt.Sprintf("-A OUTPUT -p tcp -d %s -m owner ! --uid-owner %d -j REDIRECT --to-ports %s", host, proxyUser, proxyOutbound)
	proxy := corev1.Container{
		Name: "istio-proxy", Image: appImage, ImagePullPolicy: corev1.PullNever,
		Command:         []string{"sh", "-c", fmt.Sprintf("sleep 5; exec nc -ll -p %s -e nc %s %s", proxyOutbound, host, port)},
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(proxyUser))},
	}
	mesh := func(spec *corev1.PodSpec) {
		spec.InitContainers = []corev1.Container{redirected(inbound, outbound), proxy}
	}
	first := s.pod("first", mutex(lockName, "order", "last"), mesh)
	mustOrder(t, first, "redirect", "istio-proxy", "holdfast-init", agentName, gateName)
	s.awaitLives(startWithin, 1)
	s.pod("second", mutex(lockName, "order", "last"), mesh)
	s.awaitWaiters(1)
	s.mustHold()
	s.delete("first", -1)
	s.mustHandOver(0)
}

// mustHaveNoWarning fails the test if the kubelet has complained about the pod.
func (s *trial) mustHaveNoWarning(pod string) {
	s.t.Helper()
	for _, e := range s.eventsOf(s.get(pod)) {
		if isWarning(e) {
			s.t.Errorf("warning: %s %s", e.Reason, e.Message)
		}
	}
}

// isWarning leaves out that a node, as that of hack/node, has no DNS.
func isWarning(e corev1.Event) bool {
	return e.Type == corev1.EventTypeWarning && e.Reason != "MissingClusterDNS"
}
