package main

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// nodeName is what this machine calls itself as a node.
const nodeName = "demo-node"

// fields are the values of the downward API that the containers may ask for.
func (p *pod) fields() map[string]string {
	return map[string]string{
		"metadata.name":      p.object.Name,
		"metadata.namespace": p.object.Namespace,
		"metadata.uid":       string(p.object.UID),
		"spec.nodeName":      nodeName,
	}
}

// declaredEnv is a container's environment as its pod declares it.
func (p *pod) declaredEnv(c *corev1.Container) (map[string]string, error) {
	env := map[string]string{}
	for _, v := range c.Env {
		if v.ValueFrom == nil {
			env[v.Name] = v.Value
			continue
		}
		if v.ValueFrom.FieldRef == nil {
			return nil, fmt.Errorf("container %s: %s: only fieldRef is known here", c.Name, v.Name)
		}
		value, ok := p.fields()[v.ValueFrom.FieldRef.FieldPath]
		if !ok {
			return nil, fmt.Errorf("container %s: %s: field %s is not known here", c.Name, v.Name, v.ValueFrom.FieldRef.FieldPath)
		}
		env[v.Name] = value
	}
	return env, nil
}

// agentConfig is what the webhook told the agent, read as the agent reads it.
func (p *pod) agentConfig(agent *corev1.Container) (agentenv.Config, error) {
	env, err := p.declaredEnv(agent)
	if err != nil {
		return agentenv.Config{}, err
	}
	return agentenv.Parse(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
}

// localConfig changes in c what is different on this machine, and nothing else:
// paths, ports, and the guard against a Redis that has lost its data. Nothing
// can have been lost: no lock of this run is older than the run.
func (p *pod) localConfig(agent *corev1.Container, c agentenv.Config) agentenv.Config {
	for _, path := range []*string{
		&c.Dir, &c.StateDir, &c.Redis.URLFile, &c.Redis.UsernameFile, &c.Redis.PasswordFile, &c.Redis.CAFile,
		&c.Redis.CertFile, &c.Redis.KeyFile, &c.Redis.SentinelUsernameFile, &c.Redis.SentinelPasswordFile,
	} {
		if *path != "" {
			*path = p.localPath(agent, *path)
		}
	}
	c.Listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(p.apiPort))
	c.ProbeListen = net.JoinHostPort("127.0.0.1", strconv.Itoa(p.probePort))
	c.Redis.Guard = 0
	return c
}

// agentEnv is the environment of the agent's containers.
func (p *pod) agentEnv(agent *corev1.Container) ([]string, error) {
	env, err := p.declaredEnv(agent)
	if err != nil {
		return nil, err
	}
	config, err := p.agentConfig(agent)
	if err != nil {
		return nil, err
	}
	for _, v := range p.localConfig(agent, config).Env() {
		env[v.Name] = v.Value
	}
	return environ(env), nil
}

// appEnv is the environment of one of the pod's own containers.
func (p *pod) appEnv(c *corev1.Container) ([]string, error) {
	env, err := p.declaredEnv(c)
	if err != nil {
		return nil, err
	}
	if dir, ok := env[agentenv.DirVar]; ok {
		env[agentenv.DirVar] = p.localPath(c, dir)
	}
	if _, ok := env[agentenv.URLVar]; ok {
		env[agentenv.URLVar] = p.apiURL()
	}
	return environ(env), nil
}

func (p *pod) apiURL() string { return fmt.Sprintf("http://127.0.0.1:%d", p.apiPort) }

// environ adds what every image would bring.
func environ(env map[string]string) []string {
	all := []string{"PATH=" + os.Getenv("PATH"), "HOSTNAME=" + nodeName}
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	return all
}

// argv is the command of c here. The agent's image holds nothing but the agent,
// which is its entrypoint.
func (p *pod) argv(c *corev1.Container) ([]string, error) {
	agent, err := p.agentContainer()
	switch {
	case err != nil:
		return nil, err
	case c.Image == agent.Image && len(c.Command) > 0:
		return slices.Concat([]string{p.node.agentBinary}, c.Command[1:], c.Args), nil
	case c.Image == agent.Image:
		return slices.Concat([]string{p.node.agentBinary}, c.Args), nil
	case len(c.Command) == 0:
		return nil, fmt.Errorf("container %s has no command, and its image's own cannot be known here", c.Name)
	}
	return slices.Concat(c.Command, c.Args), nil
}
