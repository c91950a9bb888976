package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// passGate runs what comes between the agent and the apps.
func (r *podRun) passGate(ctx context.Context, rest []corev1.Container, opened chan<- struct{}) {
	if !r.probeStartup(ctx) {
		return
	}
	for i := range rest {
		// An init container that fails is started again, as by a kubelet. One that
		// was stopped ends with ctx.
		for r.runToEnd(ctx, &rest[i]) != nil {
			if ctx.Err() != nil {
				return
			}
		}
	}
	close(opened)
}

// probeStartup asks the agent, period after period, until it answers. It returns
// false when ctx ends before.
func (r *podRun) probeStartup(ctx context.Context) bool {
	probe := r.agentSpec.StartupProbe
	url := fmt.Sprintf("http://127.0.0.1:%d%s", r.pod.probePort, probe.HTTPGet.Path)
	client := http.Client{
		Timeout:   time.Duration(max(probe.TimeoutSeconds, 1)) * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	for ctx.Err() == nil {
		if probeOnce(ctx, &client, url) {
			return true
		}
		select {
		case <-time.After(time.Duration(max(probe.PeriodSeconds, 1)) * time.Second):
		case <-ctx.Done():
		}
	}
	return false
}

func probeOnce(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode >= 200 && response.StatusCode < 400
}

// agentEnded applies the restart rule that was injected.
func (r *podRun) agentEnded() (again bool, err error) {
	r.record(r.pod, event{what: agentEnded, exit: r.agent.exit})
	if !restartsAll(r.agentSpec, r.agent.exit) {
		r.cutPower()
		return false, fmt.Errorf("the agent ended with %d, and no rule of its container says that the pod restarts", r.agent.exit)
	}
	r.pod.setPhase(phaseStopping)
	for _, app := range r.apps {
		app.stop(restartGrace)
	}
	r.appsEnded.Wait()
	return true, nil
}

// restartsAll tells whether a rule of c restarts the pod on this exit code. A
// process killed by a signal counts as 128 + the signal, as in a container.
func restartsAll(c *corev1.Container, exit int) bool {
	if exit < 0 {
		exit = 128 + 9
	}
	for _, rule := range c.RestartPolicyRules {
		if rule.Action != corev1.ContainerRestartRuleActionRestartAllContainers || rule.ExitCodes == nil {
			continue
		}
		listed := false
		for _, v := range rule.ExitCodes.Values {
			listed = listed || int(v) == exit
		}
		if listed == (rule.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
			return true
		}
	}
	return false
}

// complete ends a pod whose apps have all ended by themselves.
func (r *podRun) complete() error {
	if r.pod.object.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		r.cutPower()
		return fmt.Errorf("its app ended by itself with exit code %d", r.worstExit())
	}
	r.stop()
	if code := r.worstExit(); code != 0 {
		return fmt.Errorf("its app failed with exit code %d", code)
	}
	r.pod.setPhase(phaseDone)
	return nil
}

func (r *podRun) worstExit() int {
	for _, app := range r.apps {
		if app.exit != 0 {
			return app.exit
		}
	}
	return 0
}

// endAs ends the pod as it is told from outside.
func (r *podRun) endAs(e ending) {
	switch e {
	case deleted:
		r.pod.setPhase(phaseStopping)
		r.stop()
		r.pod.setPhase(phaseGone)
	case powerCut:
		r.cutPower()
		r.pod.setPhase(phaseLost)
	}
}

// stop runs the agent's preStop hook, then ends the apps, then the agent.
func (r *podRun) stop() {
	grace := 30 * time.Second
	if s := r.pod.object.Spec.TerminationGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	r.preStop(grace)
	var stopping sync.WaitGroup
	for _, app := range r.apps {
		stopping.Go(func() { app.stop(grace) })
	}
	stopping.Wait()
	r.appsEnded.Wait()
	r.agent.stop(grace)
	r.record(r.pod, event{what: agentEnded, exit: r.agent.exit})
}

// preStop runs the hook to its end. Its failure stops nothing, as on a node.
func (r *podRun) preStop(grace time.Duration) {
	hook := r.agentSpec.Lifecycle
	if hook == nil || hook.PreStop == nil || hook.PreStop.Exec == nil {
		return
	}
	inAgent := *r.agentSpec
	inAgent.Command, inAgent.Args = hook.PreStop.Exec.Command, nil
	command, err := r.command(&inAgent)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = r.processes.run(command, ctx.Done())
}

// cutPower kills everything of the pod at the same moment.
func (r *podRun) cutPower() {
	if r.agent != nil {
		r.agent.kill()
	}
	for _, app := range r.apps {
		app.kill()
	}
	r.appsEnded.Wait()
	if r.agent != nil {
		<-r.agent.ended
	}
}
