package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// errNotReplicated says how many replicas had a new hold in time.
type errNotReplicated struct{ have, want int }

func (e errNotReplicated) Error() string {
	return fmt.Sprintf("%d of %d replicas had the hold in time, so it does not count", e.have, e.want)
}

// begins tells whether a reply makes its caller a holder that was none before: a
// grant, or the answer to a renewal that knows no token yet, as one that confirms
// an offer.
func begins(c lockagent.Claim, reply []any) bool {
	outcome := ""
	if len(reply) > 0 {
		outcome, _ = reply[0].(string)
	}
	return outcome == "granted" || outcome == string(lockagent.Held) && c.Token == 0
}

// replicate waits until enough replicas have what was written on this connection,
// and before it.
func (s *Store) replicate(ctx context.Context, server caller) error {
	patience := s.timing.call / 2
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	have, err := server.Wait(ctx, s.wait, max(patience, time.Millisecond)).Result()
	if err == nil && int(have) < s.wait {
		return errNotReplicated{int(have), s.wait}
	}
	return err
}
