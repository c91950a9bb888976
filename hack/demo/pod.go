package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// pod is an admitted pod as it runs here: its containers are processes, its
// volumes folders, and its ports free ports of the loopback.
type pod struct {
	object *corev1.Pod
	lock   lock
	dir    string // everything of this pod
	node   node   // what its node lends it

	apiPort, probePort int

	app, agent output
	phase      atomic.Value            // of type phase
	end        chan ending             // how it is to end; room for one
	running    atomic.Pointer[process] // its agent
	lastToken  atomic.Int64            // with which its app was started
}

// node is what all pods here share.
type node struct {
	agentBinary string // stands for the agent's image
	secrets     string // folder with a folder for each Secret
}

// lock is what a pod's agent asks for.
type lock struct {
	kind     agentenv.Kind
	resource string
	permits  int
}

// phase is where a pod is in its life, as the kubelet sees it.
type phase string

const (
	phaseStarting phase = "starting" // init containers
	phaseGate     phase = "at the gate"
	phaseRunning  phase = "running"
	phaseStopping phase = "stopping"
	phaseDone     phase = "done"
	phaseFailed   phase = "failed"
	phaseGone     phase = "deleted"
	phaseLost     phase = "no power"
)

// newPod gives an admitted pod its folder and its ports.
func newPod(object *corev1.Pod, dir string, n node) (*pod, error) {
	p := &pod{object: object, dir: dir, node: n, end: make(chan ending, 1)}
	p.setPhase(phaseStarting)
	agent, err := p.agentContainer()
	if err != nil {
		return nil, err
	}
	config, err := p.agentConfig(agent)
	if err != nil {
		return nil, fmt.Errorf("pod %s: its injected variables: %w", object.Name, err)
	}
	p.lock = lock{config.Kind, config.Resource, config.Permits}
	if p.apiPort, err = freePort(); err != nil {
		return nil, err
	}
	if p.probePort, err = freePort(); err != nil {
		return nil, err
	}
	return p, p.makeVolumes()
}

func (p *pod) setPhase(to phase)   { p.phase.Store(to) }
func (p *pod) currentPhase() phase { return p.phase.Load().(phase) }

// agentContainer is the one native sidecar with a gate.
func (p *pod) agentContainer() (*corev1.Container, error) {
	for i := range p.object.Spec.InitContainers {
		if c := &p.object.Spec.InitContainers[i]; isSidecar(c) && c.StartupProbe != nil && c.StartupProbe.HTTPGet != nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("pod %s: no native sidecar with an HTTP startup probe was injected", p.object.Name)
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// makeVolumes makes a folder for each emptyDir. Secrets are there already.
func (p *pod) makeVolumes() error {
	for _, v := range p.object.Spec.Volumes {
		switch {
		case v.EmptyDir != nil:
			if err := os.MkdirAll(p.volumeDir(v), 0o755); err != nil {
				return err
			}
		case v.Secret == nil:
			return fmt.Errorf("pod %s: volume %s is neither an emptyDir nor a Secret; this demo knows no others", p.object.Name, v.Name)
		}
	}
	return nil
}

func (p *pod) volumeDir(v corev1.Volume) string {
	if v.Secret != nil {
		return filepath.Join(p.node.secrets, v.Secret.SecretName)
	}
	return filepath.Join(p.dir, v.Name)
}

// localPath is where a path of container c is here. A path on none of its
// volumes is returned as it is.
func (p *pod) localPath(c *corev1.Container, path string) string {
	for _, m := range c.VolumeMounts {
		below, ok := strings.CutPrefix(path, m.MountPath)
		if !ok || below != "" && below[0] != '/' {
			continue
		}
		for _, v := range p.object.Spec.Volumes {
			if v.Name == m.Name {
				return filepath.Join(p.volumeDir(v), below)
			}
		}
	}
	return path
}

// token is what the app can read in its folder; 0 when not held.
func (p *pod) token() int64 {
	agent, err := p.agentContainer()
	if err != nil {
		return 0
	}
	b, err := os.ReadFile(filepath.Join(p.localPath(agent, agentenv.Default().Dir), "held"))
	if err != nil {
		return 0
	}
	var token int64
	_, _ = fmt.Sscan(string(b), &token)
	return token
}
