package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// restartGrace is what a kubelet gives the other containers between TERM and
// KILL when one's end restarts the whole pod in place.
const restartGrace = 2 * time.Second

// kubelet runs pods as local processes, by the part of a kubelet's rules that
// the gate is built on:
//
//   - init containers run in order, each to its end; but the agent, a native
//     sidecar, runs on once it has answered its startup probe;
//   - when the agent ends with anything but 0, the rule RestartAllContainers
//     stops the other containers (no hooks; TERM, KILL after 2 s, one after
//     another) and runs the pod again from its first init container, volumes kept;
//   - a pod that is deleted, or whose apps are done, gets its preStop hooks at
//     once, and its sidecars get TERM only after the apps have ended.
//
// What it leaves out: images and isolation, liveness probes, restarts of single
// containers, back-off, and the 0.3 s to 1 s that a real one takes for each step.
type kubelet struct {
	processes *processes
	journal   *journal
	fail      func(error) // ends the demo
}

// ending says how a pod is made to end.
type ending int

const (
	deleted  ending = iota + 1 // kubectl delete pod
	powerCut                   // the node is gone: everything dies at once, and nobody restarts it
)

// run takes p through its life and returns when it is over.
func (k *kubelet) run(ctx context.Context, p *pod) {
	defer k.record(p, event{what: podEnded})
	for {
		r := &podRun{kubelet: k, pod: p}
		again, err := r.run(ctx)
		if err != nil && ctx.Err() == nil {
			p.setPhase(phaseFailed)
			k.fail(fmt.Errorf("pod %s: %w", p.object.Name, err))
		}
		if !again || ctx.Err() != nil {
			return
		}
		k.record(p, event{what: podRestarted})
	}
}

func (k *kubelet) record(p *pod, e event) {
	e.pod, e.lock = p.object.Name, p.lock.resource
	k.journal.record(e)
}

// podRun is one run of a pod's containers, from the first init container on.
type podRun struct {
	*kubelet
	pod *pod

	agent     *process
	agentSpec *corev1.Container
	apps      []*process
	appsEnded sync.WaitGroup
}

// run returns true if the pod is to be run again in place.
func (r *podRun) run(ctx context.Context) (again bool, err error) {
	gate, closeGate := context.WithCancel(ctx)
	defer closeGate()
	opened, err := r.runInitContainers(gate)
	if err != nil {
		r.cutPower()
		return false, err
	}
	select {
	case <-opened:
		if err := r.startApps(); err != nil {
			r.cutPower()
			return false, err
		}
		return r.supervise(ctx)
	case <-r.agent.ended:
		// A node would start the pod again and again, which shows nobody anything.
		return false, fmt.Errorf("its agent ended with exit code %d instead of waiting", r.agent.exit)
	case e := <-r.pod.end:
		r.endAs(e)
	case <-ctx.Done():
		r.cutPower()
	}
	return false, nil
}

// runInitContainers runs those up to the agent, and starts the agent. The channel
// is closed when those after it, the gate among them, have ended well.
func (r *podRun) runInitContainers(ctx context.Context) (<-chan struct{}, error) {
	r.pod.setPhase(phaseStarting)
	agent, err := r.pod.agentContainer()
	if err != nil {
		return nil, err
	}
	r.agentSpec = agent
	all := r.pod.object.Spec.InitContainers
	at := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == agent.Name })
	for i := range all[:at] {
		if err := r.runToEnd(ctx, &all[i]); err != nil {
			return nil, err
		}
	}
	command, err := r.command(agent)
	if err != nil {
		return nil, err
	}
	if r.agent, err = r.processes.start(command); err != nil {
		return nil, err
	}
	r.pod.running.Store(r.agent)
	r.record(r.pod, event{what: agentStarted})
	r.pod.setPhase(phaseGate)
	opened := make(chan struct{})
	go r.passGate(ctx, all[at+1:], opened)
	return opened, nil
}

func (r *podRun) runToEnd(ctx context.Context, c *corev1.Container) error {
	command, err := r.command(c)
	if err != nil {
		return err
	}
	if err := r.processes.run(command, ctx.Done()); err != nil {
		return fmt.Errorf("init container %s: %w", c.Name, err)
	}
	return nil
}

// command is what c runs here.
func (r *podRun) command(c *corev1.Container) (command, error) {
	argv, err := r.pod.argv(c)
	if err != nil {
		return command{}, err
	}
	cmd := command{argv: argv, dir: r.pod.dir, output: &r.pod.app}
	cmd.env, err = r.pod.appEnv(c)
	if c.Image == r.agentSpec.Image {
		cmd.env, err = r.pod.agentEnv(r.agentSpec)
		cmd.output = &r.pod.agent
	}
	return cmd, err
}

// startApps starts the pod's own containers. Each is in the journal before it
// exists, and leaves it only after it is gone.
func (r *podRun) startApps() error {
	token := r.pod.token()
	r.pod.lastToken.Store(token)
	r.record(r.pod, event{what: gateOpened, token: token})
	r.pod.setPhase(phaseRunning)
	for i := range r.pod.object.Spec.Containers {
		command, err := r.command(&r.pod.object.Spec.Containers[i])
		if err != nil {
			return err
		}
		r.record(r.pod, event{what: appStarted, token: token})
		app, err := r.processes.start(command)
		if err != nil {
			r.record(r.pod, event{what: appEnded, token: token, exit: -1})
			return err
		}
		r.apps = append(r.apps, app)
		r.appsEnded.Go(func() {
			<-app.ended
			r.record(r.pod, event{what: appEnded, token: token, exit: app.exit})
		})
	}
	return nil
}

// supervise waits until the apps have ended or must.
func (r *podRun) supervise(ctx context.Context) (again bool, err error) {
	done := make(chan struct{})
	go func() { r.appsEnded.Wait(); close(done) }()
	select {
	case <-done:
		return false, r.complete()
	case <-r.agent.ended:
		return r.agentEnded()
	case e := <-r.pod.end:
		r.endAs(e)
	case <-ctx.Done():
		r.cutPower()
	}
	return false, nil
}
