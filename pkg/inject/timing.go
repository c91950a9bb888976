package inject

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

const (
	minTTLStop   = 20 * time.Second // below, stopping the app takes more than half of it
	minTTLNotify = 5 * time.Second
	maxTTL       = 60 * time.Second // also how long Redis grants nothing after a restart

	// What the kubelet was seen to need from the agent's end to the end of the
	// app: it stops the containers one after another, and kills each that does
	// not heed TERM after two seconds, which with its own work are up to 2.25.
	stopDelay        = 1250 * time.Millisecond
	stopPerContainer = 2250 * time.Millisecond

	execDelay = 500 * time.Millisecond // the agent's own, from KILL to the command's end
)

// readTTL leaves the range to checkTTL: it depends on what a loss does.
func readTTL(p *parser, key, value string) {
	ttl, err := wholeSeconds(value)
	if err != nil {
		p.refuse(key, "%v", err)
		return
	}
	p.req.Agent.TTL = ttl
}

// checkTTL judges the TTL and sets the margin: how long before the end of a hold
// the agent gives it up, so that the app has stopped in time.
func (p *parser) checkTTL() {
	if !p.good(KeyTTL, KeyOnLost, KeyGate, KeyStopGrace, KeyOrder) {
		return
	}
	agent := &p.req.Agent
	switch {
	case agent.OnLost == agentenv.LostNotify && (agent.TTL < minTTLNotify || agent.TTL > maxTTL):
		p.refuse(KeyTTL, "must be from %s to %s", short(minTTLNotify), short(maxTTL))
		return
	case agent.OnLost == agentenv.LostStop && (agent.TTL < minTTLStop || agent.TTL > maxTTL):
		p.refuse(KeyTTL, "must be from %s to %s; from %s with %s: notify", short(minTTLStop), short(maxTTL), short(minTTLNotify), KeyOnLost)
		return
	}
	stopping := p.stopping()
	agent.Margin = margin(agent.TTL, stopping)
	if agent.Margin <= agent.TTL/2 {
		return
	}
	ttl := short(agent.TTL) // not the annotation, which may be absent
	if smallest := smallestTTL(stopping); smallest <= maxTTL {
		p.reject(annotationPath(KeyTTL), ttl, "too short to stop this pod's containers in time: use %s or more", short(smallest))
		return
	}
	p.reject(annotationPath(KeyTTL), ttl, "no ttl is long enough to stop this pod's containers in time: use %s: notify, or fewer containers", KeyOnLost)
}

// stopping is how long it takes to stop the app, by the worst that was seen; 0 if
// a loss does not stop it.
func (p *parser) stopping() time.Duration {
	agent := p.req.Agent
	switch {
	case agent.OnLost == agentenv.LostNotify:
		return 0
	case agent.Gate == agentenv.GateExec:
		return agent.StopGrace + execDelay
	}
	return stopDelay + stopPerContainer*time.Duration(containersAfterAgent(p.spec, p.req.Order))
}

// margin leaves a tenth of the TTL for clocks and scheduling on top of the
// stopping. An app that is only told has a fifth to come to its end.
func margin(ttl, stopping time.Duration) time.Duration {
	if stopping == 0 {
		return ttl / 5
	}
	return ttl/10 + stopping
}

// smallestTTL is the shortest in whole seconds of which the margin takes at most
// half.
func smallestTTL(stopping time.Duration) time.Duration {
	ttl := stopping * 5 / 2 // ttl/10 + stopping = ttl/2
	if rest := ttl % time.Second; rest > 0 {
		ttl += time.Second - rest
	}
	return max(ttl, minTTLStop)
}

// containersAfterAgent counts the user's containers that start after the agent,
// and so are stopped when it ends.
func containersAfterAgent(spec *corev1.PodSpec, order Order) int {
	n := len(spec.Containers)
	if order == OrderLast {
		return n
	}
	for _, c := range spec.InitContainers {
		if !reservedContainers.Has(c.Name) {
			n++
		}
	}
	return n
}
