package inject

import (
	"math"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// oneProcessor is told to Go before the program could do so itself: until then Go
// has set up 27 KB for each processor of the node, and keeps it.
var oneProcessor = corev1.EnvVar{Name: "GOMAXPROCS", Value: "1"}

// initContainer raises the epoch by which the agent knows that the pod's
// containers have been restarted. It needs no variable for that.
func initContainer(spec *corev1.PodSpec, req *Request, settings *Settings) corev1.Container {
	c := container(InitContainer, initCommand(), spec, req, settings)
	c.VolumeMounts = []corev1.VolumeMount{{Name: StateVolume, MountPath: req.Agent.StateDir}}
	return c
}

// gateContainer ends once the agent holds the lock; the kubelet starts nothing
// that follows before. It is a container and not the agent's startup probe, since
// a kubelet that is restarted takes such a probe for answered (kubernetes#142305).
func gateContainer(spec *corev1.PodSpec, req *Request, settings *Settings) corev1.Container {
	c := container(GateContainer, gateCommand(), spec, req, settings)
	c.Env = []corev1.EnvVar{oneProcessor} // it waits as long as the agent does
	c.VolumeMounts = []corev1.VolumeMount{{Name: RunVolume, MountPath: req.Agent.Dir, ReadOnly: true}}
	setGateRestarts(&c, spec, req)
	// Its last words are why the lock was not to be had: "kubectl describe" shows them.
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	return c
}

// setGateRestarts keeps a gate that is killed, as for want of memory, from failing a
// pod that is never restarted; one that may fail fails it by its own exit code
// alone. A cluster knows a policy of an init container's own where it knows the
// rules that stop the app, and not before.
func setGateRestarts(gate *corev1.Container, spec *corev1.PodSpec, req *Request) {
	if spec.RestartPolicy != corev1.RestartPolicyNever || !req.Agent.StopsApp() {
		return // the pod's policy
	}
	if req.Agent.OnBusy == agentenv.BusyWait && req.Agent.WaitTimeout == 0 {
		gate.RestartPolicy = new(corev1.ContainerRestartPolicyOnFailure)
		return
	}
	gate.RestartPolicy = new(corev1.ContainerRestartPolicyNever)
	gate.RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action: corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
			Operator: corev1.ContainerRestartRuleOnExitCodesOpNotIn,
			Values:   []int32{0, exitBusy},
		},
	}}
}

// agentContainer is a native sidecar: the kubelet starts what follows while it
// runs, and stops it after the app.
func agentContainer(spec *corev1.PodSpec, req *Request, settings *Settings) corev1.Container {
	c := container(AgentContainer, agentCommand(), spec, req, settings)
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	c.RestartPolicyRules = restartRules(req)
	c.Env = environment(spec, req, settings)
	c.StartupProbe = startupProbe(req)
	c.LivenessProbe = livenessProbe(req)
	// The hook tells the agent that the pod is ending before any container gets
	// TERM.
	c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
		Exec: &corev1.ExecAction{Command: []string{agentProgram, "prestop"}},
	}}
	// A resize must not restart the agent: that would be a TERM while the app runs.
	c.ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
		{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.NotRequired},
	}
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: RunVolume, MountPath: req.Agent.Dir},
		{Name: StateVolume, MountPath: req.Agent.StateDir},
		{Name: RedisVolume, MountPath: redisDir, ReadOnly: true},
	}
	return c
}

// container is what init and agent have in common.
func container(name string, command []string, spec *corev1.PodSpec, req *Request, settings *Settings) corev1.Container {
	return corev1.Container{
		Name:            name,
		Image:           settings.Image,
		ImagePullPolicy: settings.ImagePullPolicy,
		Command:         command,
		Resources:       resources(spec, req, settings),
		SecurityContext: securityContext(spec, settings),
	}
}

// keepForeign carries over to ours what others may have decided about a container
// that is there already: the image, the resources, mounts and variables beyond
// ours, and GOMAXPROCS. All else is put right.
func keepForeign(ours, have *corev1.Container) {
	ours.Image = have.Image
	ours.ImagePullPolicy = have.ImagePullPolicy
	ours.Resources = have.Resources
	ours.TerminationMessagePath = have.TerminationMessagePath
	ours.TerminationMessagePolicy = have.TerminationMessagePolicy
	for _, m := range have.VolumeMounts {
		if !slices.ContainsFunc(ours.VolumeMounts, func(o corev1.VolumeMount) bool { return o.MountPath == m.MountPath }) {
			ours.VolumeMounts = append(ours.VolumeMounts, m)
		}
	}
	for _, e := range have.Env {
		if strings.HasPrefix(e.Name, agentenv.Prefix) {
			continue
		}
		if e.Name == oneProcessor.Name {
			ours.Env = slices.DeleteFunc(ours.Env, func(o corev1.EnvVar) bool { return o.Name == e.Name })
		}
		ours.Env = append(ours.Env, e)
	}
}

// restartRules lets the agent's end restart the whole pod in place, which is how
// a loss stops the app.
func restartRules(req *Request) []corev1.ContainerRestartRule {
	if !req.Agent.StopsApp() {
		return nil
	}
	return []corev1.ContainerRestartRule{{
		Action: corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
			Operator: corev1.ContainerRestartRuleOnExitCodesOpNotIn,
			Values:   []int32{0},
		},
	}}
}

// environment is what the agent is told: the request, the settings, and what only
// the pod will know.
func environment(spec *corev1.PodSpec, req *Request, settings *Settings) []corev1.EnvVar {
	config := req.Agent
	config.Listen, config.ProbeListen = req.listen(), req.probeListen()
	config.LogLevel, _ = settings.logLevel() // checked when the settings were read
	config.Redis.Guard, _ = settings.guard()
	config.Redis.Wait, config.Redis.AllowEviction = settings.Redis.Wait, settings.Redis.AllowEviction
	config.Redis.URLFile = path.Join(redisDir, "url")
	config.Redis.UsernameFile = path.Join(redisDir, "username")
	config.Redis.PasswordFile = path.Join(redisDir, "password")
	config.Redis.CAFile = path.Join(redisDir, "ca.crt")
	config.Redis.CertFile = path.Join(redisDir, "tls.crt")
	config.Redis.KeyFile = path.Join(redisDir, "tls.key")
	config.Redis.SentinelUsernameFile = path.Join(redisDir, "sentinel-username")
	config.Redis.SentinelPasswordFile = path.Join(redisDir, "sentinel-password")
	config.GracePeriod = gracePeriod(spec)

	var env []corev1.EnvVar
	for _, v := range config.Env() {
		env = append(env, corev1.EnvVar{Name: v.Name, Value: v.Value})
	}
	return append(env,
		fromPod(agentenv.PodNameVar, "metadata.name"),
		fromPod(agentenv.PodNamespaceVar, "metadata.namespace"),
		fromPod(agentenv.PodUIDVar, "metadata.uid"),
		fromPod(agentenv.NodeVar, "spec.nodeName"),
		oneProcessor,
	)
}

func fromPod(name, fieldPath string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: fieldPath},
	}}
}

// gracePeriod is how long the kubelet lets the pod end, at most what a duration
// can hold: Kubernetes takes any number of seconds.
func gracePeriod(spec *corev1.PodSpec) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if spec.TerminationGracePeriodSeconds != nil {
		seconds = *spec.TerminationGracePeriodSeconds
	}
	return time.Duration(min(seconds, int64(math.MaxInt64/time.Second))) * time.Second
}
