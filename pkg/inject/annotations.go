package inject

import (
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Prefix starts the key of every annotation that is ours.
const Prefix = "holdfast.dev/"

// The annotations. What each means stands in the table below.
const (
	KeyMutex       = Prefix + "mutex"
	KeySemaphore   = Prefix + "semaphore"
	KeyPermits     = Prefix + "permits"
	KeyScope       = Prefix + "scope"
	KeyGate        = Prefix + "gate"
	KeyOnBusy      = Prefix + "on-busy"
	KeyWaitTimeout = Prefix + "wait-timeout"
	KeyOnLost      = Prefix + "on-lost"
	KeyHandoff     = Prefix + "handoff"
	KeyTTL         = Prefix + "ttl"
	KeyStopGrace   = Prefix + "stop-grace"
	KeyPriority    = Prefix + "priority"
	KeyOrder       = Prefix + "order"
	KeyProbe       = Prefix + "probe"
	KeyContainers  = Prefix + "containers"
	KeyRedis       = Prefix + "redis"
	KeyAgentCPU    = Prefix + "agent-cpu"
	KeyAgentMemory = Prefix + "agent-memory"
	KeyAgentPort   = Prefix + "agent-port"
	KeyStatus      = Prefix + "status"
)

// What Holdfast itself writes on a pod that it has injected.
const (
	LabelInjected  = Prefix + "injected" // "true"
	StatusInjected = "injected"          // value of KeyStatus
)

// Annotation is one key: how it is read, and its row in docs/annotations.md.
type Annotation struct {
	Key     string
	Values  string // what may be written
	Default string // what holds when it is not; empty for none
	Meaning string
	// Unsupported says which values are refused for now: all of them if it is
	// "*", none if it is empty.
	Unsupported string

	read reader
}

// Annotations is every key there is, in the order of the documentation. A key
// that is not here is refused.
var Annotations = []Annotation{
	{
		Key: KeyMutex, Values: "a lock name",
		Meaning: "Exactly one pod at a time holds this lock. Exactly one of `mutex` and `semaphore` is needed.",
		read:    readLock(agentenv.Mutex),
	}, {
		Key: KeySemaphore, Values: "a lock name",
		Meaning: "At most `permits` pods at a time hold this lock.",
		read:    readLock(agentenv.Semaphore),
	}, {
		Key: KeyPermits, Values: "`1` to `100000`",
		Meaning: "How many may hold the semaphore at once. Required with `semaphore`, refused with `mutex`.",
		read:    readInteger(1, maxPermits, func(r *Request) *int { return &r.Agent.Permits }),
	}, {
		Key: KeyScope, Values: "`namespace`, `cluster`", Default: "`namespace`",
		Meaning: "Who shares the lock: the pods of this namespace, or those of the whole cluster. The platform team lists the namespaces that may use `cluster`.",
		read:    readOneOf(func(r *Request) *Scope { return &r.Scope }, ScopeNamespace, ScopeCluster),
	}, {
		Key: KeyGate, Values: "`start`, `exec`, `none`", Default: "`start`",
		Meaning:     "`start`: the containers start only once the lock is held. `exec`: their command is wrapped. `none`: they start at once and read the status.",
		Unsupported: string(agentenv.GateExec),
		read:        readOneOf(func(r *Request) *agentenv.Gate { return &r.Agent.Gate }, agentenv.GateStart, agentenv.GateExec, agentenv.GateNone),
	}, {
		Key: KeyOnBusy, Values: "`wait`, `fail`, `skip`", Default: "`wait`",
		Meaning:     "What to do while the lock is not free: wait for it, let the gate fail with exit code 75, or end successfully without having run (`skip`, with `gate: exec` only). See [below](#waits-that-end).",
		Unsupported: string(agentenv.BusySkip),
		read:        readOneOf(func(r *Request) *agentenv.OnBusy { return &r.Agent.OnBusy }, agentenv.BusyWait, agentenv.BusyFail, agentenv.BusySkip),
	}, {
		Key: KeyWaitTimeout, Values: "whole seconds, `1s` to `168h`",
		Meaning: "With `on-busy: wait`: how long to wait before doing as `fail` does. It counts from when the pod began to wait, also over restarts of its agent.",
		read:    readSeconds(minWaitTimeout, maxWaitTimeout, func(r *Request) durationField { return &r.Agent.WaitTimeout }),
	}, {
		Key: KeyOnLost, Values: "`stop`, `notify`", Default: "`stop`; with `gate: none` it is `notify`",
		Meaning: "What to do when the lock is lost: stop the containers before its TTL ends, and let them wait for it again; or only tell them.",
		read:    readOneOf(func(r *Request) *agentenv.OnLost { return &r.Agent.OnLost }, agentenv.LostStop, agentenv.LostNotify),
	}, {
		Key: KeyHandoff, Values: "`rollout`, `off`", Default: "`rollout` in a Deployment with `gate: start`, `on-lost: stop`, `on-busy: wait`, and no `wait-timeout` below the `ttl`; else `off`",
		Meaning: "`rollout`: a newer revision of the same Deployment takes the lock over from a pod that holds it, so that a rolling update never waits for itself. With `off` such a Deployment needs `strategy: {type: Recreate}`.",
		read:    readOneOf(func(r *Request) *agentenv.Handoff { return &r.Handoff }, agentenv.HandoffRollout, agentenv.HandoffOff),
	}, {
		Key: KeyTTL, Values: "whole seconds, `20s` to `60s`; from `5s` with `on-lost: notify`", Default: "`30s`",
		Meaning: "How long the lock outlives a holder that has vanished. It is renewed each third of that time.",
		read:    readTTL,
	}, {
		Key: KeyStopGrace, Values: "whole seconds, `1s` to `23s`", Default: "`5s`",
		Meaning:     "With `gate: exec`: how long a command has between TERM and KILL when the lock is lost.",
		Unsupported: "*",
		read:        readSeconds(minStopGrace, maxStopGrace, func(r *Request) durationField { return &r.Agent.StopGrace }),
	}, {
		Key: KeyPriority, Values: "`-100` to `100`", Default: "`0`",
		Meaning: "The higher goes first. Equals go in the order in which they came.",
		read:    readInteger(-maxPriority, maxPriority, func(r *Request) *int { return &r.Agent.Priority }),
	}, {
		Key: KeyOrder, Values: "`first`, `last`", Default: "`first`",
		Meaning: "The agent's place among the init containers. Those before it run without the lock.",
		read:    readOneOf(func(r *Request) *Order { return &r.Order }, OrderFirst, OrderLast),
	}, {
		Key: KeyProbe, Values: "`http`, `exec`", Default: "`http`; `exec` with `hostNetwork` and beside a mesh's proxy",
		Meaning: "How the kubelet asks the agent: over the network, or by a process in its container. `exec` is for pods that the kubelet cannot reach: see [meshes](meshes.md). It costs a little more memory.",
		read:    readOneOf(func(r *Request) *Probe { return &r.Probe }, ProbeHTTP, ProbeExec),
	}, {
		Key: KeyContainers, Values: "container names, separated by commas", Default: "all but init containers",
		Meaning: "Which containers can see the lock's status. All of them wait for it.",
		read:    readContainers,
	}, {
		Key: KeyRedis, Values: "a profile", Default: "`default`",
		Meaning:     "Which Redis keeps the lock.",
		Unsupported: "*",
		read:        readProfile,
	}, {
		Key: KeyAgentCPU, Values: "a quantity, `1m` to `2`", Default: "`10m`",
		Meaning: "CPU request of the agent. There is no limit, for an agent that is throttled loses locks; but a pod that is Guaranteed stays so: there it is request and limit, and `50m` by default.",
		read:    readQuantity("1m", "2", func(r *Request) quantityField { return &r.CPU }),
	}, {
		Key: KeyAgentMemory, Values: "a quantity, `16Mi` to `1Gi`", Default: "request `16Mi`, limit `32Mi`",
		Meaning: "Memory request and limit of the agent.",
		read:    readQuantity("16Mi", "1Gi", func(r *Request) quantityField { return &r.Memory }),
	}, {
		Key: KeyAgentPort, Values: "`1024` to `65534`", Default: "`8650`",
		Meaning: "Port of the agent's API on loopback. The kubelet's probes use the next one, unless they are `probe: exec`. Pods with `hostNetwork` have no port, so there the key is refused.",
		read:    readInteger(1024, 65534, func(r *Request) *int { return &r.Port }),
	}, {
		Key: KeyStatus, Values: "written by Holdfast: `injected`",
		Meaning: "Says that the pod has its agent, as does the label `holdfast.dev/injected: \"true\"`. What a user writes here is ignored.",
		read:    func(*parser, string, string) {},
	},
}
