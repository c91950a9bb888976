package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// replicas is how many pods the singleton gets.
const replicas = 3

// play plays all scenes, in order.
func (d *demo) play(ctx context.Context) error {
	for _, s := range []struct {
		heading string
		play    func(context.Context) error
	}{
		{"1. An annotation, and what the webhook makes of it", d.playInjection},
		{"2. Three replicas, one mutex: one runs, two wait", d.playReplicas},
		{"3. The holder's agent crashes", d.playAgentCrash},
		{"4. The holder's pod is deleted: the next one takes over at once", d.playHandover},
		{"5. The holder's node loses power: the next one takes over when the lease has run out", d.playPowerCut},
		{"6. Jobs that share a semaphore, and a CronJob that is started twice", d.playJobs},
	} {
		if err := d.scene(ctx, s.heading, s.play); err != nil {
			return err
		}
	}
	return nil
}

// playInjection shows what the webhook makes of the samples. These pods are not
// run; the later scenes have theirs injected anew, one by one.
func (d *demo) playInjection(ctx context.Context) error {
	shown := map[string]bool{}
	for _, s := range d.samples {
		before := newObject(s)
		after, err := d.cluster.admission.admit(ctx, before, d.cluster.namespace)
		if err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		}
		if shown[s.file] {
			continue
		}
		d.say("%s/%s, %s:", samplesDir, s.file, d.count(s))
		for _, line := range s.annotations() {
			d.say("    %s", yellow.in(line))
		}
		if shown[s.file] = true; len(shown) > 1 {
			d.say("  %s", green.in("+ likewise"))
			continue
		}
		for _, line := range added(before, after) {
			d.say("  %s", green.in("+ "+line))
		}
	}
	return nil
}

// count says how many workloads like s are in its file.
func (d *demo) count(s sample) string {
	n := 0
	for _, other := range d.samples {
		if other.file == s.file && other.kind == s.kind {
			n++
		}
	}
	if n == 1 {
		return "a " + s.kind
	}
	return fmt.Sprintf("%d %ss", n, s.kind)
}

func (d *demo) playReplicas(ctx context.Context) error {
	for range replicas {
		if _, err := d.cluster.create(ctx, d.singleton); err != nil {
			return err
		}
	}
	pods := d.cluster.shown()
	d.track(ctx, pods[0].lock)
	if _, err := d.waitFor(ctx, appStarted, pods[0].lock, "", d.began); err != nil {
		return err
	}
	return d.waitForQueue(ctx, replicas-1)
}

// waitForQueue waits until so many pods say that they wait.
func (d *demo) waitForQueue(ctx context.Context, length int) error {
	return waitUntil(ctx, func() bool {
		waiting := 0
		for _, r := range d.rows(ctx) {
			if r.state != nil && r.state.State == lockagent.Waiting && r.state.Position > 0 {
				waiting++
			}
		}
		return waiting == length
	})
}

// playAgentCrash kills nothing but the holder's agent. Its node restarts the pod
// in place, and the new agent finds the hold of the old one.
func (d *demo) playAgentCrash(ctx context.Context) error {
	holder, err := d.holder()
	if err != nil {
		return err
	}
	d.say("kill -9 of the agent of %s. The app must not run on without it, so the node stops the app", holder.object.Name)
	d.say("and starts the pod again in place. The new agent finds its own hold and goes on with it.")
	token, killed := holder.lastToken.Load(), time.Now()
	holder.running.Load().kill()
	again, err := d.waitFor(ctx, appStarted, holder.lock, "", killed)
	if err != nil {
		return err
	}
	if again.pod != holder.object.Name || again.token != token {
		return fmt.Errorf("after the crash of its agent, %s with token %d should hold again, not %s with %d",
			holder.object.Name, token, again.pod, again.token)
	}
	d.say("%s", green.in(fmt.Sprintf("Back after %.1f s with the same token; nobody else ran meanwhile.", again.at.Sub(killed).Seconds())))
	return nil
}

// playHandover deletes the holder's pod. Its app ends in peace, and only then
// its agent gives the lock to the first in line.
func (d *demo) playHandover(ctx context.Context) error {
	holder, err := d.holder()
	if err != nil {
		return err
	}
	d.say("kubectl delete pod %s; its Deployment makes another one, which waits in line.", holder.object.Name)
	token, start := holder.lastToken.Load(), time.Now()
	d.cluster.end(holder, deleted)
	if _, err := d.cluster.create(ctx, d.singleton); err != nil {
		return err
	}
	ended, err := d.waitFor(ctx, appEnded, holder.lock, holder.object.Name, start)
	if err != nil {
		return err
	}
	next, err := d.waitFor(ctx, appStarted, holder.lock, "", ended.at)
	if err != nil {
		return err
	}
	d.handover = next.at.Sub(ended.at)
	d.say("%s", green.in(fmt.Sprintf("%s runs %.1f ms after the app of %s had ended; token %d > %d.",
		next.pod, milliseconds(d.handover), holder.object.Name, next.token, token)))
	return d.waitForQueue(ctx, replicas-1)
}

// playPowerCut kills the holder's agent and app in one moment, and no node is
// there to restart them.
func (d *demo) playPowerCut(ctx context.Context) error {
	holder, err := d.holder()
	if err != nil {
		return err
	}
	before, err := d.witness.read(ctx, holder.lock)
	if err != nil {
		return err
	}
	d.say("kill -9 of agent and app of %s, and nobody restarts them. Nobody can tell a dead node from a", holder.object.Name)
	d.say("silent one, so Redis keeps the lock until its lease has run out, %.1f s from now (see holdfast.dev/ttl).", before.left.Seconds())
	token, cut := holder.lastToken.Load(), time.Now()
	d.cluster.end(holder, powerCut)
	next, err := d.waitFor(ctx, appStarted, holder.lock, "", cut)
	if err != nil {
		return err
	}
	d.takeover = next.at.Sub(cut)
	d.say("%s", green.in(fmt.Sprintf("%s runs %.0f ms after the power cut, %.0f ms after the lease had run out; token %d > %d.",
		next.pod, milliseconds(d.takeover), milliseconds(max(0, d.takeover-before.left)), next.token, token)))
	return d.waitForQueue(ctx, replicas-2)
}

// playJobs runs Jobs to their ends, all started at once.
func (d *demo) playJobs(ctx context.Context) error {
	d.cluster.drain()
	start := time.Now()
	var pods []*pod
	for _, s := range append(slices.Clone(d.capped), d.scheduled, d.scheduled) {
		p, err := d.cluster.create(ctx, s)
		if err != nil {
			return err
		}
		if !slices.Contains(d.locks, p.lock) {
			d.track(ctx, p.lock)
		}
		pods = append(pods, p)
	}
	d.say("All start at once. The %d Jobs share %d permits, the two runs of the CronJob one mutex.", len(d.capped), pods[0].lock.permits)
	for _, p := range pods {
		if _, err := d.waitFor(ctx, podEnded, p.lock, p.object.Name, start); err != nil {
			return err
		}
	}
	return nil
}

// holder is the pod whose app runs under the mutex now.
func (d *demo) holder() (*pod, error) {
	for _, p := range d.cluster.shown() {
		if p.currentPhase() == phaseRunning && p.lock == d.locks[0] {
			return p, nil
		}
	}
	return nil, fmt.Errorf("nobody holds %q", d.locks[0].resource)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
