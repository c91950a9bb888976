package inject

import (
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// checkRules compares the keys with each other. A rule is skipped when a value
// that it needs was refused already.
func (p *parser) checkRules() {
	p.checkLock()
	p.checkPermits()
	p.checkScope()
	p.checkOnBusy()
	p.checkStopGrace()
	p.checkHandoff()
	p.checkTTL()
}

func (p *parser) checkLock() {
	switch mutex, semaphore := p.has(KeyMutex), p.has(KeySemaphore); {
	case mutex && semaphore:
		p.refuse(KeySemaphore, "%s is set too: keep one of them", KeyMutex)
	case !mutex && !semaphore:
		p.require(KeyMutex, "the other holdfast.dev keys name no lock: add %s, or %s with %s", KeyMutex, KeySemaphore, KeyPermits)
	}
}

func (p *parser) checkPermits() {
	mutex, semaphore, permits := p.has(KeyMutex), p.has(KeySemaphore), p.has(KeyPermits)
	switch {
	case mutex && !semaphore && permits:
		p.refuse(KeyPermits, "a mutex has one permit: remove this key, or use %s", KeySemaphore)
	case semaphore && !mutex && !permits:
		p.require(KeyPermits, "a semaphore needs the number of pods that may hold it at once, such as %q", "2")
	}
}

// checkScope makes the lock's name whole: which pods share it is part of it.
func (p *parser) checkScope() {
	agent := &p.req.Agent
	if p.req.Scope == ScopeNamespace {
		agent.Resource = p.namespace + "/" + agent.Resource
		return
	}
	if !slices.Contains(p.settings.ClusterScopeNamespaces, p.namespace) {
		p.refuse(KeyScope, "namespace %q may not use it: ask the platform team to list it in clusterScopeNamespaces", p.namespace)
	}
	agent.Resource = "cluster:" + agent.Resource
}

func (p *parser) checkOnBusy() {
	if !p.good(KeyOnBusy, KeyGate, KeyWaitTimeout) {
		return
	}
	agent := p.req.Agent
	if agent.OnBusy == agentenv.BusySkip && agent.Gate != agentenv.GateExec {
		p.refuse(KeyOnBusy, "goes only with %s: exec", KeyGate)
	}
	if agent.OnBusy == agentenv.BusyFail && agent.Gate == agentenv.GateNone {
		p.refuse(KeyOnBusy, noGate, KeyGate)
	}
	switch {
	case !p.has(KeyWaitTimeout):
	case agent.OnBusy != agentenv.BusyWait:
		p.refuse(KeyWaitTimeout, "goes only with %s: wait", KeyOnBusy)
	case agent.Gate == agentenv.GateNone:
		p.refuse(KeyWaitTimeout, noGate, KeyGate)
	}
}

const noGate = "with %s: none the app runs whether the lock is free or not, and nothing could fail: remove this key, the app can ask for itself"

func (p *parser) checkStopGrace() {
	if p.has(KeyStopGrace) && p.good(KeyStopGrace, KeyGate) && p.req.Agent.Gate != agentenv.GateExec {
		p.refuse(KeyStopGrace, "goes only with %s: exec", KeyGate)
	}
}

// checkHandoff refuses a handoff from an app that nothing stops, or to a pod that
// does not wait for it.
func (p *parser) checkHandoff() {
	if p.req.Handoff != agentenv.HandoffRollout || !p.good(KeyHandoff, KeyGate, KeyOnLost, KeyOnBusy, KeyWaitTimeout, KeyTTL) {
		return
	}
	switch {
	case p.req.Agent.Gate == agentenv.GateNone:
		p.refuse(KeyHandoff, "goes only with %s: start, since without a gate a new pod is ready at once: remove the key", KeyGate)
	case !p.req.Agent.StopsApp():
		p.refuse(KeyHandoff, "goes only with %s: stop, since a holder that yields is stopped: remove one of the two", KeyOnLost)
	case p.req.Agent.OnBusy != agentenv.BusyWait:
		p.refuse(KeyHandoff, "goes only with %s: wait, since a pod that does not wait cannot be handed a lock: remove one of the two", KeyOnBusy)
	case !p.req.Agent.WaitsForHandoff():
		p.refuse(KeyHandoff, "goes only with a %s of at least the ttl, which is %s: the holder would be stopped for a pod that has given up", KeyWaitTimeout, short(p.req.Agent.TTL))
	}
}
