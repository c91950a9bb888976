package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// samplesDir is where the workloads are, seen from the top of the repository.
const samplesDir = "config/samples"

// setUp builds and starts all that the scenes need.
func setUp(ctx context.Context, s *screen, ps *processes, redis server, dir string) (*demo, error) {
	d := &demo{screen: s}
	if err := d.chooseSamples(); err != nil {
		return nil, err
	}
	s.line("Building holdfast-agent and holdfast-webhook; the first time takes a while.")
	if err := build(ctx, ps, dir); err != nil {
		return nil, err
	}
	secrets := filepath.Join(dir, "secrets")
	if err := redis.writeSecret(filepath.Join(secrets, secretName)); err != nil {
		return nil, err
	}
	client, err := redis.connect(ctx)
	if err != nil {
		return nil, err
	}
	admission, err := startWebhook(ctx, ps, filepath.Join(dir, "holdfast-webhook"), filepath.Join(dir, "webhook"))
	if err != nil {
		return nil, err
	}
	d.witness = witness{client}
	d.began = time.Now()
	d.journal = newJournal(func(e event) {
		if text := tell(e); text != "" {
			s.line("   %6.2f s  %s", e.at.Sub(d.began).Seconds(), text)
		}
	})
	d.cluster = &cluster{
		namespace: redis.namespace,
		dir:       filepath.Join(dir, "pods"),
		admission: admission,
		kubelet:   &kubelet{processes: ps, journal: d.journal},
		node:      node{agentBinary: filepath.Join(dir, "holdfast-agent"), secrets: secrets},
		made:      map[string]int{},
	}
	return d, nil
}

// chooseSamples says who plays.
func (d *demo) chooseSamples() (err error) {
	if d.samples, err = loadSamples(samplesDir); err != nil {
		return err
	}
	singletons, err := withLock(d.samples, "Deployment", "mutex")
	if err != nil {
		return err
	}
	scheduled, err := withLock(d.samples, "CronJob", "mutex")
	if err != nil {
		return err
	}
	d.singleton, d.scheduled = singletons[0], scheduled[0]
	d.capped, err = withLock(d.samples, "Job", "semaphore")
	return err
}

// build makes both programs from this checkout.
func build(ctx context.Context, ps *processes, dir string) error {
	for program, source := range map[string]string{"holdfast-agent": "./cmd/sidecar", "holdfast-webhook": "./cmd/webhook"} {
		log := &output{}
		err := ps.run(command{
			argv: []string{"go", "build", "-buildvcs=false", "-o", filepath.Join(dir, program), source},
			env:  os.Environ(), output: log,
		}, ctx.Done())
		if err != nil {
			return fmt.Errorf("build %s: %w\n%s", program, err, log.tail())
		}
	}
	return nil
}
