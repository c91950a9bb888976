//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Pods that Holdfast has nothing to do with, in the shape that it gives to its
// own. What the node needs for them is the floor that ours are compared with: the
// same containers, volumes and probes, at the same time.

// plainGate ends once the test has made a file, as a gate does at a grant.
func plainGate(file string) corev1.Container {
	return app("gate", "-lock=none", "-until="+file)
}

// openGate is one that keeps nobody waiting.
func openGate() corev1.Container { return app("gate", "-lock=none", "-run=1ms") }

// plainAgent is a sidecar with the probes and the restart rule of an agent.
func plainAgent(flags ...string) corev1.Container {
	const port = 8651
	c := app("agent", append([]string{"-lock=none", "-serve=:8651"}, flags...)...)
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	c.RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action: corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
			Operator: corev1.ContainerRestartRuleOnExitCodesOpNotIn, Values: []int32{0},
		},
	}}
	get := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(port)}}
	c.StartupProbe = &corev1.Probe{ProbeHandler: get, PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 30}
	c.LivenessProbe = &corev1.Probe{ProbeHandler: get, PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 3}
	return c
}

// plainHelpers is how many lives a plain pod has beside its apps'.
const plainHelpers = 3

// alike puts an agent and a gate before the apps, which run under no lock.
func alike(agent, gate corev1.Container) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
		for _, name := range []string{"run", "state"} {
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: memory}})
			agent.VolumeMounts = append(agent.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
		}
		first := app("init", "-lock=none", "-run=1ms")
		spec.InitContainers = append([]corev1.Container{first, agent, gate}, spec.InitContainers...)
		for i := range spec.Containers {
			spec.Containers[i].Env = append(spec.Containers[i].Env, corev1.EnvVar{Name: "LOCK", Value: "none"})
			spec.Containers[i].VolumeMounts = append(spec.Containers[i].VolumeMounts, corev1.VolumeMount{Name: "run", MountPath: "/run"})
		}
	}
}

// aside is the same trial with journals of its own, for the pods to compare with.
func (s *trial) aside() *trial {
	s.t.Helper()
	other := *s
	other.journal = filepath.Join(s.journal, "plain")
	if err := os.MkdirAll(other.journal, 0o755); err != nil {
		s.t.Fatal(err)
	}
	return &other
}

// touch makes a file beside the journals.
func (s *trial) touch(file string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.journal, file), nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// remove takes it away again.
func (s *trial) remove(file string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.journal, file)); err != nil {
		s.t.Fatal(err)
	}
}

// stopped is how long a plain pod's kubelet took from the end of the sidecar
// that restarts it to the end of its last app.
func (s *trial) stopped(pod string) (needed time.Duration, done bool) {
	s.t.Helper()
	var asked, last time.Duration
	for _, l := range s.lives() {
		switch {
		case l.pod != pod || l.name == "init" || l.name == "gate":
		case l.name == "agent":
			if asked == 0 {
				asked = l.at("end", "")
			}
		case asked == 0 || l.start < asked: // and none of the restarted ones
			last = max(last, l.last)
		}
	}
	return last - asked, asked > 0 && boot()-last > time.Second
}
