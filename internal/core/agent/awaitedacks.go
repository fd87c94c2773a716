package agent

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
)

// WaitsForEver reports whether a commit waits for acknowledgements until they come. That
// holds for a lossless promotion whatever the spec says by now: the operator takes the
// promise back first.
func (c *Cluster) WaitsForEver() bool {
	return c != nil && (c.Durability.WaitsForEver() || c.Promotion.IsLossless())
}

// Promised is what is remembered of the acknowledgements that commits wait for.
type Promised struct {
	// Acks is their number, in Epoch.
	Acks  int
	Epoch int64
	// Order is the number of the last order about them that was obeyed in Epoch; 0 for none.
	Order int64
	// TailEpoch is the epoch since which the log may end in what nobody acknowledged; 0
	// when it may not.
	TailEpoch int64
}

// MayHaveTail reports whether the log may end in what nobody acknowledged, as far as the
// volume remembers.
func (p Promised) MayHaveTail() bool { return p.TailEpoch != 0 }

// Awaits is what a primary is to wait for: so many acknowledgements of each commit, in an
// epoch, by an order of this number; 0 when it is no order, but the promotion itself.
type Awaits struct {
	Epoch int64
	Acks  int
	Order int64
}

// Refuses tells why an order about acknowledgements is not obeyed; nil when it is. A network
// that was cut delivers an order long after it was sent, and the status that a later one was
// decided with says by now what an election may rely on.
func (p Promised) Refuses(a Awaits) *core.Problem {
	if p.Epoch == a.Epoch && a.Order < p.Order {
		return &core.Problem{Reason: core.OrderStale, Message: fmt.Sprintf(
			"order %d to wait for %s has come late: order %d of epoch %d was obeyed before", a.Order,
			core.Acknowledgements(a.Acks), p.Order, p.Epoch)}
	}
	return nil
}

// Before is what has to be remembered before commits wait for acknowledgements, so that a
// restart in place never opens with fewer than were promised; and whether a tail begins
// with it, of which the base is to be read then. It does when commits begin to wait for ever.
func (p Promised) Before(a Awaits, forEver, writes bool) (after Promised, begins bool) {
	if p.Epoch != a.Epoch {
		p.Acks, p.Epoch, p.Order = a.Acks, a.Epoch, 0
	}
	p.Acks, p.Order = max(p.Acks, a.Acks), max(p.Order, a.Order)
	begins = forEver && (p.TailEpoch != a.Epoch || !writes)
	if begins || !forEver {
		p.TailEpoch = 0
	}
	return p, begins
}

// Looks at who acknowledges.
const (
	// AckLook is how often a primary looks for strangers where the number of its replicas does not change. A
	// stranger that comes in the moment in which a member goes changes none.
	AckLook = 30 * time.Second
	// AckLookAgain is the pause after a look that failed. It doubles with each further one, up to AckLook: a look that
	// failed is repeated sooner than one that did not.
	AckLookAgain = 2 * time.Second
	// StrangerStays is for how long one is told of that was cut off. A replica tries again after a minute.
	StrangerStays = 5 * time.Minute
)

// AckLooks is when a primary last looked who acknowledges its commits, how many did, and how many looks in a row have
// failed.
type AckLooks struct {
	clients  int
	next     time.Time
	failures int
}

// IsTime reports whether it is time to look: another number acknowledges than at the last look, whatever came of that,
// or none is due. Where commits wait for nobody, or nobody is attached, nobody acknowledges. While an account is being
// changed, no table can be looked at.
func (l AckLooks) IsTime(s core.SemiSync, now time.Time) bool {
	return s.SourceEnabled && s.Clients > 0 && !s.LocksAccounts && (s.Clients != l.clients || !now.Before(l.next))
}

// After is what is known after a look.
func (AckLooks) After(s core.SemiSync, now time.Time) AckLooks {
	return AckLooks{clients: s.Clients, next: now.Add(AckLook)}
}

// Failed is what is known after a look that failed.
func (l AckLooks) Failed(s core.SemiSync, now time.Time) AckLooks {
	pause := min(AckLookAgain<<min(l.failures, 8), AckLook)
	return AckLooks{clients: s.Clients, next: now.Add(pause), failures: l.failures + 1}
}

// Fails reports whether the last look has failed.
func (l AckLooks) Fails() bool { return l.failures > 0 }
