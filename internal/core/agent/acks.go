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
