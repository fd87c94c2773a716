package agent

import (
	"fmt"

	"cnmsql.co/internal/core"
)

// LowersAcks: the order would have commits wait for fewer than they wait for. Such an order
// is held against the Cluster as it is now, for it may come late.
func (f *Facts) LowersAcks(epoch int64, acks int) bool {
	return f.AcksEpoch == epoch && acks < f.Acks
}

// MayAwait answers an order to have commits wait for so many acknowledgements from now on:
// nil, or why not. The operator lowers what an election relies on before it has a primary
// wait for fewer, and raises it after; an order for fewer than that is of the past.
func MayAwait(p *core.Promotion, epoch int64, acks int) *core.Problem {
	switch {
	case p == nil || p.Epoch != epoch:
		return &core.Problem{Reason: core.OrderStaleEpoch, Message: fmt.Sprintf("the promotion of epoch %d has ended", epoch)}
	case acks < p.RequiredAcks:
		return &core.Problem{Reason: core.OrderStale, Message: fmt.Sprintf(
			"an election relies on %d acknowledgements of each commit; the order to wait for %d has come late", p.RequiredAcks, acks)}
	}
	return nil
}

// WaitsForEver reports whether a commit waits for acknowledgements until they come. That
// holds for a lossless promotion whatever the spec says by now: the operator takes the
// promise back first.
func (c *Cluster) WaitsForEver() bool {
	return c != nil && (c.Durability == core.DurabilityQuorum || c.Promotion != nil && c.Promotion.LosslessSince > 0)
}

// Promised is what is remembered of the acknowledgements that commits wait for: their number,
// of which epoch, and since which epoch the log may end in what nobody acknowledged; 0 when
// it may not.
type Promised struct {
	Acks             int
	Epoch, TailEpoch int64
}

// Before is what has to be remembered before commits wait for acks in an epoch, so that a
// restart in place never opens with fewer than were promised; and whether a tail begins
// with it, of which the base is to be read then. It does when commits begin to wait for ever.
func (p Promised) Before(epoch int64, acks int, forEver, writes bool) (after Promised, begins bool) {
	if p.Epoch != epoch || acks > p.Acks {
		p.Acks, p.Epoch = acks, epoch
	}
	begins = forEver && (p.TailEpoch != epoch || !writes)
	if begins || !forEver {
		p.TailEpoch = 0
	}
	return p, begins
}
