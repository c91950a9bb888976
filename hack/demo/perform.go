package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// perform plays all scenes and judges what happened in them.
func (d *demo) perform(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d.fail, d.cluster.kubelet.fail = fail, fail

	err := d.play(ctx)
	if err != nil {
		if !errors.Is(err, context.Canceled) { // by Ctrl-C
			d.showLogs()
		}
		fail(err) // nobody needs to end in peace any more
	}
	d.cluster.drain()
	if err == nil {
		err = d.compareFences(ctx)
	}
	fail(nil)
	d.tracking.Wait()
	if err := errors.Join(err, d.judge(err == nil)); err != nil {
		return err
	}
	d.conclude()
	return nil
}

// track has Redis itself watched for l until ctx ends.
func (d *demo) track(ctx context.Context, l lock) {
	d.locks = append(d.locks, l)
	d.tracking.Go(func() { d.witness.watchLimit(ctx, l, d.fail) })
}

// compareFences asks Redis for the last fencing token of each lock: no app may
// have had a greater one.
func (d *demo) compareFences(ctx context.Context) error {
	spans := lifetimes(d.journal.all())
	for _, l := range d.locks {
		r, err := d.witness.read(ctx, l)
		if err != nil {
			return err
		}
		for _, s := range ofLock(spans, l.resource) {
			if s.token > r.fence {
				return fmt.Errorf("lock %q: %s had the fencing token %d, but the last one in Redis is %d", l.resource, s.pod, s.token, r.fence)
			}
		}
	}
	return nil
}

// showLogs shows what the pods wrote last, for the case of a failure.
func (d *demo) showLogs() {
	for _, p := range d.cluster.shown() {
		for name, o := range map[string]*output{"agent": &p.agent, "app": &p.app} {
			if text := strings.TrimSpace(o.tail()); text != "" {
				d.screen.line("\n%s", bold.in(fmt.Sprintf("Last lines of the %s of %s", name, p.object.Name)))
				d.screen.line("%s", text)
			}
		}
	}
}

// judge looks at the lives of all apps, and fails if anything that is promised
// was not kept or, at the end of a whole play, was not put to the test.
func (d *demo) judge(whole bool) error {
	spans := lifetimes(d.journal.all())
	var errs []error
	for _, l := range d.locks {
		under := ofLock(spans, l.resource)
		errs = append(errs, checkLimit(under, l.permits), checkTokens(under))
		if seen := len(largestCrowd(under).pods); whole && seen < l.permits {
			errs = append(errs, fmt.Errorf("lock %q: never more than %d pods ran at once though %d may, which proves nothing", l.resource, seen, l.permits))
		}
	}
	return errors.Join(errs...)
}

// conclude says what was found, if all was well.
func (d *demo) conclude() {
	spans := lifetimes(d.journal.all())
	d.screen.line("\n%s", bold.in("What was seen, by the lives of the processes themselves"))
	for _, l := range d.locks {
		under := ofLock(spans, l.resource)
		d.say("%s %q: %d runs, never more than %d at once; fencing tokens only ever grew", l.kind, l.resource, len(under), l.permits)
	}
	d.say("Redis, asked %d times a second, never listed more holders either.", time.Second/lookEvery)
	d.say("Handed over in %.1f ms when the holder ended, in %.1f s when its node was gone.", milliseconds(d.handover), d.takeover.Seconds())
	d.say("On a real node the kubelet adds about two seconds: see docs/node-figures.md.")
	d.screen.line("\n%s", bold.in("Next"))
	d.say("%-38s what was run here, to copy from", samplesDir)
	d.say("%-38s all that can be written on a pod", "docs/annotations.md")
	d.say("%-38s the same with a real Redis", "REDIS_URL=redis://HOST:6379 make demo")
}
