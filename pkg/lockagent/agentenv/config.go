// Package agentenv defines the environment variables that travel from the
// webhook, which writes them into the injected containers, to the agent, which
// reads them. It is the only contract between the two programs, and imports
// nothing but the standard library so that either can afford it.
//
// One table (vars.go) drives both directions, so what [Config.Env] writes is
// what [Parse] reads.
package agentenv

import (
	"log/slog"
	"strings"
	"time"
)

// SocketName is the API's unix socket, in HOLDFAST_DIR.
const SocketName = "agent.sock"

// How an exec probe lasts. Starting a process in a container costs far more
// than an HTTP request does, so one that finds the agent well goes on asking for a
// while, as often as an HTTP probe would. One that does not ends at once.
const (
	ProbeLasts   = 30 * time.Second
	ProbeTimeout = 50 * time.Second // what the kubelet gives it, to start and end included
)

// Kind is what sort of lock a resource is.
type Kind string

// The two kinds. They share no Redis key, even under one name.
const (
	Mutex     Kind = "mutex"     // exactly one holder
	Semaphore Kind = "semaphore" // at most Permits holders
)

// Gate says what keeps the app from running without the lock.
type Gate string

// The gates. See the annotation holdfast.dev/gate.
const (
	GateStart Gate = "start" // the app's containers start only once the lock is held
	GateExec  Gate = "exec"  // the app's command is wrapped
	GateNone  Gate = "none"  // the app starts at once and reads the status
)

// OnBusy says what happens when the lock is not free.
type OnBusy string

// The answers to a busy lock. See the annotation holdfast.dev/on-busy.
const (
	BusyWait OnBusy = "wait"
	BusyFail OnBusy = "fail"
	BusySkip OnBusy = "skip"
)

// OnLost says what happens to the app when a hold is lost.
type OnLost string

// The answers to a loss. See the annotation holdfast.dev/on-lost.
const (
	LostStop   OnLost = "stop"   // the app is stopped before the TTL ends
	LostNotify OnLost = "notify" // the app is told and goes on
)

// Handoff says who may ask a holder to yield.
type Handoff string

// The handoffs. See the annotation holdfast.dev/handoff.
const (
	HandoffOff     Handoff = "off"
	HandoffRollout Handoff = "rollout"
)

// Config is everything that the agent is told. The comment of each field ends
// with its default.
type Config struct {
	Kind     Kind   // mutex or semaphore; required
	Resource string // the lock's full name: NAMESPACE/NAME or cluster:NAME; required
	Permits  int    // how many may hold at once; required with a semaphore, else 1

	TTL         time.Duration // how long a hold lives without renewal; 30s
	Margin      time.Duration // how long before the hold's end the agent stops calling itself holding; TTL/5
	Gate        Gate          // start
	OnBusy      OnBusy        // wait
	WaitTimeout time.Duration // give up waiting after this long; 0, never
	OnLost      OnLost        // stop, with gate none notify
	StopGrace   time.Duration // with gate exec, between TERM and KILL on a loss; 5s
	GracePeriod time.Duration // the pod's terminationGracePeriodSeconds; 30s
	Priority    int           // -100 to 100, higher goes first; 0

	Handoff    Handoff // off
	Workload   string  // UID of the Deployment, with handoff
	ReplicaSet string  // UID of the ReplicaSet, with handoff
	Revision   int64   // the ReplicaSet's revision, with handoff

	Redis Redis

	Dir         string     // what the app may read; /var/run/holdfast
	StateDir    string     // the agent's own; /var/lib/holdfast
	Listen      string     // address of the app's API, "localhost" meaning both loopbacks, empty for none but the socket; localhost:8650
	ProbeListen string     // address of the kubelet's probes; a path, from "/" on, is that of the socket that exec probes ask at; empty for none; :8651
	LogLevel    slog.Level // info

	Pod Pod
}

// Redis says where the lock lives. Secrets are files, never variables, and are
// read again when they change. A file that does not exist is as none, since which
// of them a Secret has is up to the server's set-up; but for URLFile.
type Redis struct {
	URL          string // this or URLFile is required
	URLFile      string // file that holds the URL
	UsernameFile string // file that holds the ACL user; none
	PasswordFile string // file that holds its password; none
	CAFile       string // PEM file of the CA that signed the server's certificate; the system's
	CertFile     string // PEM file of the agent's own certificate; none
	KeyFile      string // PEM file of its key; none

	SentinelUsernameFile string // file that holds the Sentinels' ACL user; the URL's
	SentinelPasswordFile string // file that holds its password; the URL's

	Wait          int           // replicas that must acknowledge a hold before it counts; 0
	AllowEviction bool          // go on with a Redis that may evict locks when its memory is full; false
	Guard         time.Duration // planned, not heeded yet: no new hold for this long after the server's start; 60s, "off" is 0
}

// Pod says where the agent runs. Empty outside Kubernetes.
type Pod struct {
	Name      string
	Namespace string
	UID       string // not empty means: in a pod
	Node      string
}

// InPod tells whether a kubelet starts and ends this agent. Outside a pod TERM
// is a plain end; inside one it may come while the app still runs.
func (c Config) InPod() bool { return c.Pod.UID != "" }

// StopsApp tells whether a loss ends the app by ending the agent.
func (c Config) StopsApp() bool { return c.OnLost == LostStop }

// ExecProbes tells whether the kubelet asks by processes in the agent's container,
// at a socket, and not over the network.
func (c Config) ExecProbes() bool { return strings.HasPrefix(c.ProbeListen, "/") }

// HandsOver tells whether a newer revision of the same workload may have the hold.
func (c Config) HandsOver() bool { return c.Handoff == HandoffRollout }

// WaitsForHandoff tells whether the pod waits for long enough to be handed a lock:
// a holder has to be asked, and its app to be stopped. One that gives up before has
// that app stopped in vain, with each of its attempts. A TTL is ample, for stopping
// takes less than half of it.
func (c Config) WaitsForHandoff() bool {
	return c.OnBusy == BusyWait && (c.WaitTimeout == 0 || c.WaitTimeout >= c.TTL)
}

// Default is the configuration before any variable is read. TTL-dependent
// defaults (Margin) and gate-dependent ones (OnLost) are filled in by [Parse].
func Default() Config {
	return Config{
		TTL:         30 * time.Second,
		Gate:        GateStart,
		OnBusy:      BusyWait,
		StopGrace:   5 * time.Second,
		GracePeriod: 30 * time.Second,
		Handoff:     HandoffOff,
		Redis:       Redis{Guard: 60 * time.Second},
		Dir:         "/var/run/holdfast",
		StateDir:    "/var/lib/holdfast",
		Listen:      "localhost:8650",
		ProbeListen: ":8651",
		LogLevel:    slog.LevelInfo,
	}
}
