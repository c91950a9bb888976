package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// demo is all that the scenes play with.
type demo struct {
	screen  *screen
	cluster *cluster
	journal *journal
	witness witness
	began   time.Time

	samples   []sample
	singleton sample   // a Deployment with a mutex
	capped    []sample // Jobs with one semaphore
	scheduled sample   // a CronJob with a mutex
	locks     []lock   // of theirs, once there are pods

	fail     func(error)    // ends it all
	tracking sync.WaitGroup // see track

	handover time.Duration // from the end of the old app to the start of the next
	takeover time.Duration // from the power cut to the start of the next
}

// scene plays one scene: a heading, then play with the table below what it says.
func (d *demo) scene(ctx context.Context, heading string, play func(context.Context) error) error {
	d.cluster.forget()
	d.screen.line("")
	d.screen.line("%s", bold.in(heading))
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { d.watch(watching) })
	err := play(ctx)
	if err == nil {
		err = d.pause(ctx)
	}
	stop()
	watcher.Wait()
	if err == nil {
		d.screen.show(table(d.rows(ctx), time.Now()))
	}
	d.screen.settle()
	return err
}

// pause gives the apps time to say something, and people, where there are any,
// to read it.
func (d *demo) pause(ctx context.Context) error {
	look := 300 * time.Millisecond
	if d.screen.live {
		look = 1500 * time.Millisecond
	}
	select {
	case <-time.After(look):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// say explains. It is indented below the heading.
func (d *demo) say(format string, args ...any) { d.screen.line("   "+format, args...) }

// waitFor waits for an event under l after the moment after; of any pod, if pod
// is empty.
func (d *demo) waitFor(ctx context.Context, w what, l lock, pod string, after time.Time) (event, error) {
	e, err := d.journal.wait(ctx, after, func(e event) bool {
		return e.what == w && e.lock == l.resource && (pod == "" || e.pod == pod)
	})
	if err != nil {
		return e, fmt.Errorf("waiting for %q under %q: %w", w, l.resource, err)
	}
	return e, nil
}

// waitUntil asks done again and again until it is true.
func waitUntil(ctx context.Context, done func() bool) error {
	for !done() {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
