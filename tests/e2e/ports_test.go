//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The API has its port on both loopbacks of the pod, and the probes have theirs on
// all of its addresses, whatever family they are.
func TestTheAgentsPortInBothFamilies(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.pod("pod", mutex(lockName, "agent-port", "9000", "agent-cpu", "20m", "agent-memory", "24Mi"))
	s.awaitLives(startWithin, 1)
	s.awaitReady("pod")
	pod := s.get("pod")
	if got := s.inside("pod", "sh", "-c", `printf %s "$HOLDFAST_URL"`); got != "http://127.0.0.1:9000" {
		t.Errorf("HOLDFAST_URL is %q", got)
	}
	six := s.linkLocal("pod")
	loopbacks := []string{"127.0.0.1"}
	addresses := []string{pod.Status.PodIP}
	if six == "" {
		t.Log("pods of this cluster have no IPv6 at all")
	} else {
		loopbacks, addresses = append(loopbacks, "::1"), append(addresses, six)
	}
	for _, loopback := range loopbacks {
		answer := s.inside("pod", "sh", "-c", `printf 'GET /v1/held HTTP/1.0\r\n\r\n' | nc `+loopback+` 9000`)
		if !strings.HasPrefix(answer, "HTTP/1.0 200") {
			t.Errorf("%s port 9000 answers %q", loopback, answer)
		}
	}
	for _, address := range addresses {
		client := http.Client{Timeout: 5 * time.Second}
		answer, err := client.Get("http://" + net.JoinHostPort(strings.Replace(address, "%", "%25", 1), "9001") + "/livez")
		if err != nil {
			t.Errorf("the kubelet's port: %v", err)
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s port 9001 answers %s", address, answer.Status)
		}
	}
	agent := status(pod, agentName).Resources
	if cpu, memory := agent.Requests.Cpu().String(), agent.Limits.Memory().String(); cpu != "20m" || memory != "24Mi" {
		t.Errorf("the agent has cpu %s and memory %s, want 20m and 24Mi", cpu, memory)
	}
}

// linkLocal is the pod's own IPv6 address as this machine reaches it; "" without.
func (s *trial) linkLocal(pod string) string {
	s.t.Helper()
	lines := bufio.NewScanner(strings.NewReader(s.inside(pod, "sh", "-c", "cat /proc/net/if_inet6 || true")))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 6 && fields[5] != "lo" && strings.HasPrefix(fields[0], "fe80") {
			var groups []string
			for i := 0; i < len(fields[0]); i += 4 {
				groups = append(groups, fields[0][i:i+4])
			}
			return strings.Join(groups, ":") + "%" + s.nearInterface()
		}
	}
	return ""
}

// nearInterface is the machine's interface on the network of the pods.
func (s *trial) nearInterface() string {
	s.t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, i := range interfaces {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if strings.HasPrefix(a.String(), shared.host+"/") {
				return i.Name
			}
		}
	}
	s.t.Fatal(fmt.Errorf("no interface has %s", shared.host))
	return ""
}
