package lockagent

import (
	"context"
	"time"
)

// revision is the one that counts for this pod: an undo raises its ReplicaSet's
// while it runs or waits, and nothing lowers it.
func (l *loop) revision() int64 { return max(l.cfg.Revision, l.live) }

// askRevision reads the ReplicaSet's revision for the request that follows, in no
// more than a part of its time. Without an answer the last one counts.
func (l *loop) askRevision(ctx context.Context, c *Claim, r *result, within time.Duration) {
	store, ok := l.store.(Revisions)
	if !ok || c.Workload == "" || c.ReplicaSet == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r.live, r.liveErr = store.Revision(ctx, *c)
	c.Revision = max(c.Revision, r.live)
}

// learnRevision takes in what was read. A failure is told once: it only matters
// after an undo, and what else is wrong with the store is told anyhow.
func (l *loop) learnRevision(r result) {
	if r.liveErr != nil {
		if !l.liveFailed {
			l.log.Warn("cannot read the revision of the pod's ReplicaSet; the last known counts",
				"revision", l.revision(), "error", r.liveErr)
		}
		l.liveFailed = true
		return
	}
	if r.live == 0 {
		return
	}
	l.liveFailed = false
	before := l.revision()
	l.live = max(l.live, r.live)
	if now := l.revision(); now != before {
		l.log.Info("the pod's ReplicaSet has a new revision", "revision", now, "before", before)
	}
}
