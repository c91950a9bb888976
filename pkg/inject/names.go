package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Names of what is injected.
const (
	InitContainer  = "holdfast-init"
	AgentContainer = "holdfast-agent"
	GateContainer  = "holdfast-gate"

	RunVolume   = "holdfast-run"   // what the app may read
	StateVolume = "holdfast-state" // the agent's own
	RedisVolume = "holdfast-redis" // the Secret with Redis' address and password

	redisDir     = "/etc/holdfast/redis"
	agentProgram = "/holdfast-agent" // in the agent's image
	exitBusy     = 75                // of the gate, when the lock is not to be had
)

// Names that a user may not take, those of later features included, so that
// these do not break a pod that runs today.
var (
	reservedContainers = sets.New(InitContainer, AgentContainer, GateContainer)
	reservedVolumes    = sets.New(RunVolume, StateVolume, RedisVolume, "holdfast-bin")
)

// injected tells whether spec has our containers already: the webhook is called
// again after others, and people apply what "kubectl get -o yaml" has shown. It
// looks at no more than what makes them ours; [Mutate] puts the rest right.
func injected(spec *corev1.PodSpec) bool {
	var init, agent bool
	for _, c := range spec.InitContainers {
		switch {
		case c.Name == InitContainer && slices.Equal(c.Command, initCommand()):
			init = true
		case c.Name == AgentContainer && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways && slices.Equal(c.Command, agentCommand()):
			agent = true
		}
	}
	return init && agent
}

func initCommand() []string  { return []string{agentProgram, "init"} }
func agentCommand() []string { return []string{agentProgram, "run"} }
func gateCommand() []string  { return []string{agentProgram, "gate"} }
