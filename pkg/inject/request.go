package inject

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Scope says who shares a lock.
type Scope string

// The scopes. See [KeyScope].
const (
	ScopeNamespace Scope = "namespace"
	ScopeCluster   Scope = "cluster"
)

// Order is the agent's place among the init containers.
type Order string

// The places. See [KeyOrder].
const (
	OrderFirst Order = "first"
	OrderLast  Order = "last"
)

// Probe is how the kubelet asks the agent.
type Probe string

// The ways to ask. See [KeyProbe].
const (
	ProbeHTTP Probe = "http"
	ProbeExec Probe = "exec"
)

// Request is what a pod's annotations ask for, judged and complete. Only
// [Parse] makes one.
type Request struct {
	// Agent is what the agent is told, but for what comes from the settings and
	// from the pod itself.
	Agent agentenv.Config

	Scope      Scope
	Handoff    agentenv.Handoff // what is wished for, empty for the default; the agent is told by belongTo
	Order      Order
	Probe      Probe
	Containers []string           // who sees the status; nil for every app container
	CPU        *resource.Quantity // nil for the default
	Memory     *resource.Quantity // nil for the default
	Port       int                // of the agent's API; HTTP probes use the next one

	// HostNetwork says that the ports of the pod are those of its node, so that the
	// agent must open none: there may be another pod like it.
	HostNetwork bool
}

const (
	defaultPort = 8650
	maxPermits  = 100_000
	maxPriority = 100

	minWaitTimeout = time.Second
	maxWaitTimeout = 7 * 24 * time.Hour
	minStopGrace   = time.Second
	maxStopGrace   = 23 * time.Second
)

func newRequest() *Request {
	return &Request{
		Agent: agentenv.Default(),
		Scope: ScopeNamespace,
		Order: OrderFirst,
		Port:  defaultPort,
	}
}

// setDefaults fills in what depends on other keys.
func (r *Request) setDefaults() {
	if r.Agent.OnLost == "" {
		r.Agent.OnLost = agentenv.LostStop
		if r.Agent.Gate == agentenv.GateNone {
			r.Agent.OnLost = agentenv.LostNotify
		}
	}
	if r.Agent.Kind == agentenv.Mutex {
		r.Agent.Permits = 1
	}
}
