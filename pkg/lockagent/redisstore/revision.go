package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// RevisionTTL is how long a revision stays published. It outlasts a restart of
// all that publishes, and a ReplicaSet that is gone leaves nothing for longer.
const RevisionTTL = time.Hour

// maxRevision is what a script can count with.
const maxRevision = 1 << 53

// revisionKey is a string, the revision as a number. It belongs to no lock, so it
// has a slot of its own in a cluster, and its namespace in it for an ACL to see.
func revisionKey(namespace, replicaSet string) string {
	return "revision:{" + namespace + "/" + replicaSet + "}"
}

// Revision tells which revision the claim's ReplicaSet has now: an undo gives an
// old one a new number. 0 is "nobody says", and then the number that the agent
// was started with counts.
func (s *Store) Revision(ctx context.Context, c lockagent.Claim) (int64, error) {
	var revision int64
	err := s.link.visit(func(server caller) (err error) {
		revision, err = server.Get(ctx, revisionKey(c.Namespace, c.ReplicaSet)).Int64()
		return err
	})
	switch {
	case errors.Is(err, redis.Nil):
		return 0, nil
	case err != nil:
		return 0, s.fail("read the revision for", err)
	case revision < 1 || revision > maxRevision:
		return 0, nil // not ours: no better than none
	}
	return revision, nil
}

// Publisher tells agents which revisions there are. It knows nothing of locks.
// [OpenPublisher] makes one.
type Publisher struct{ link *link }

// OpenPublisher prepares a Publisher; it connects only when first used. Of the
// options it needs those that say where Redis is.
func OpenPublisher(o Options) (*Publisher, error) {
	raw, err := o.url()
	if err != nil {
		return nil, err
	}
	addr, err := parseAddress(raw)
	if err != nil {
		return nil, err
	}
	return &Publisher{newLink(addr, o, timingOf(agentenv.Default().TTL), "")}, nil
}

// Publish says for [RevisionTTL] which revision a ReplicaSet, named by its UID,
// has. The last one who says so counts.
func (p *Publisher) Publish(ctx context.Context, namespace, replicaSet string, revision int64) error {
	err := p.link.visit(func(server caller) error {
		return server.Set(ctx, revisionKey(namespace, replicaSet), strconv.FormatInt(revision, 10), RevisionTTL).Err()
	})
	if err == nil {
		return nil
	}
	code := codeOf(err)
	if code == lockagent.CodeNoPermission {
		err = fmt.Errorf("the redis user may not do this; give it the ACL of docs/redis.md: %w", err)
	}
	return &lockagent.StoreError{Op: "publish the revision of", Resource: namespace + "/" + replicaSet, Code: code, Err: err}
}

// Close ends all connections.
func (p *Publisher) Close() error { return p.link.client.Close() }
