package redisstore

import (
	"context"
	_ "embed"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// The parts that only owners of a workload need.
var (
	//go:embed lua/workload.lua
	workloadPart []byte
	//go:embed lua/yield.lua
	yieldPart []byte
	//go:embed lua/alone.lua
	alonePart []byte
	//go:embed lua/ask.lua
	askPart []byte
	//go:embed lua/asked.lua
	askedPart []byte
	//go:embed lua/transfer.lua
	transferPart []byte
)

// The scripts of an owner that belongs to a workload. It pays for what it can ask
// and be asked; the others do not.
var (
	askingAcquireScript = grantingScript{assemble(workloadPart, lockPart, ttlPart, clockPart, fencePart, freePart, holderPart, recordPart, holdPart, queuePart, offerPart, yieldPart, askPart, acquirePart)}
	askedRenewScript    = plainScript{assemble(workloadPart, lockPart, ttlPart, holderPart, clockPart, fencePart, recordPart, holdPart, queuePart, yieldPart, askedPart)}
	transferScript      = grantingScript{assemble(workloadPart, lockPart, holderPart, clockPart, fencePart, recordPart, holdPart, queuePart, offerPart, yieldPart, transferPart)}
)

// askingKeys are those of the lock, and what is asked in the claim's workload. The
// latter expires by itself.
func (s *Store) askingKeys(c lockagent.Claim) []string {
	return append(slices.Clone(s.keys), s.keys[0]+":yield:"+c.Workload)
}

// askedRenew is Renew of an owner that may be asked to yield.
func (s *Store) askedRenew(ctx context.Context, c lockagent.Claim) (lockagent.Renewal, error) {
	const op = "renew"
	if err := checkClaim(c); err != nil {
		return lockagent.Renewal{}, s.fail(op, err)
	}
	reply, err := s.run(ctx, c, askedRenewScript.run, s.askingKeys(c), c.Owner, c.TTL.Milliseconds(), c.Token, who(c))
	if err != nil {
		return lockagent.Renewal{}, s.fail(op, err)
	}
	r := replyReader{values: reply}
	renewal := r.renewal()
	if len(r.values) > 0 {
		renewal.Heir = &lockagent.Heir{Owner: r.text(), Question: r.text(), Pod: r.text(), Revision: r.number()}
	}
	return renewal, s.fail(op, r.err)
}

// Transfer is one script, and at most two messages.
func (s *Store) Transfer(ctx context.Context, c lockagent.Claim, h lockagent.Heir) (lockagent.Outcome, error) {
	const op = "transfer"
	if err := checkClaim(c); err != nil {
		return "", s.fail(op, err)
	}
	reply, err := s.run(ctx, c, transferScript.run, s.askingKeys(c), c.Owner, h.Owner, h.Question)
	if err != nil {
		return "", s.fail(op, err)
	}
	r := replyReader{values: reply}
	outcome := lockagent.Outcome(r.text())
	switch outcome {
	case lockagent.Passed, lockagent.Held, lockagent.Gone, lockagent.Taken:
	default:
		r.unknown(string(outcome))
	}
	return outcome, s.fail(op, r.err)
}
