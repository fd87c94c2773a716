package agent

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// promote makes this instance the primary when it is permitted to be. First it applies all it has
// received and all it must have. Then it takes the lease. Then it opens for writes, or follows the external
// server that the promotion names.
func promote(f *Facts) (Decision, bool) {
	if !f.Permitted() || f.Server == nil {
		return pass()
	}
	p := f.promotion()
	if f.WritableEpoch == p.Epoch {
		if p.FollowsServer() {
			return f.followServer(p)
		}
		return f.open()
	}
	if d, waits := applyAll(f, p); waits {
		return d, true
	}
	if d, waits := f.awaitHeld(); waits {
		return d, true
	}
	var actions []Action
	switch {
	case f.Cluster.Leased() && f.needsLease(p):
		actions = append(actions, AcquireLease{p.Epoch})
	case !f.Cluster.Leased() && f.ConfirmedEpoch != p.Epoch:
		actions = append(actions, ConfirmPromotion{p.Epoch})
	}
	if p.FollowsServer() {
		return tell(core.Running, core.InstancePromoting, "", append(actions, BecomeFollower{p.Epoch, p.Follows})...)
	}
	acks := p.RequiredAcks
	if f.AcksEpoch == p.Epoch {
		// A restart in place must not open with fewer than were promised before.
		acks = max(acks, f.Acks)
	}
	return tell(core.Running, core.InstancePromoting, "", append(actions,
		BecomePrimary{Epoch: p.Epoch, Acks: acks, Unheard: f.unheard()})...)
}

// needsLease reports whether the lease is to be taken: for each epoch, and again after this
// instance isolated itself, unless peers vouch for it by now.
func (f *Facts) needsLease(p *core.Promotion) bool {
	return f.LeaseEpoch != p.Epoch || !f.MayStayWritable()
}

// Succeed takes the place of the view before, nil where there was none, and reports whether a promotion that
// was confirmed by it counts as confirmed still.
func (c *Cluster) Succeed(before *Cluster, now time.Time) (keepsConfirmed bool) {
	c.PrimarySince = now
	if c.tellsSamePrimary(before) {
		c.PrimarySince = before.PrimarySince
	}
	return c.keepsConfirmed(before)
}

// keepsConfirmed reports whether a promotion that was confirmed while before was known needs
// no other look. It does once the lease is off that was on: this instance may be told of
// the past, by a watch that goes on where it was cut off, and nothing else would hold it back.
func (c *Cluster) keepsConfirmed(before *Cluster) bool {
	return c.Leased() || before == nil || !before.Leased()
}

func applyAll(f *Facts, p *core.Promotion) (Decision, bool) {
	s, r := f.Server, f.Server.Replication
	if f.appliesAsPrimary(p) {
		return pass()
	}
	if r != nil && r.SQLError != "" && !r.SQLRunning && !f.hasApplied(p) {
		return tell(core.Running, core.InstanceApplierStopped, "cannot be promoted: the applier stopped before it "+
			"applied all required transactions: "+r.SQLError, applyAgain(f)...)
	}
	if missing := p.RequiredGTID.Subtract(s.Holds()); !missing.IsEmpty() {
		return receiveMissing(f, missing)
	}
	if f.receiving() {
		// What is retrieved must stand still before it is held against what is executed.
		return tell(core.Running, core.InstancePromoting, "stops receiving", StopReceiving{})
	}
	if f.hasApplied(p) {
		return pass()
	}
	if r == nil {
		return tell(core.Running, core.InstanceApplierStopped, "cannot be promoted: no applier runs for the received "+
			"transactions")
	}
	wait := WaitApplied{Set: s.Holds(), Alone: true}
	if !r.SQLRunning {
		return tell(core.Running, core.InstancePromoting, "applies what was received", StartApplying{}, wait)
	}
	return tell(core.Running, core.InstancePromoting, "applies what was received", wait)
}

// appliesAsPrimary reports whether this instance, which follows an external server and was the primary before, applies
// as such what it has received.
func (f *Facts) appliesAsPrimary(p *core.Promotion) bool {
	return p.FollowsServer() && f.Cluster.CurrentPrimary == f.Me && f.Server.Holds().Contains(p.RequiredGTID)
}

// hasApplied reports whether all that a promotion requires is executed, and all that was received.
func (f *Facts) hasApplied(p *core.Promotion) bool {
	s := f.Server
	return s.Executed.Contains(p.RequiredGTID) && s.Executed.Contains(s.Holds())
}

// AwaitsOpening reports whether nothing of its data hinders this instance, which is promoted and whose mysqld answers,
// from taking writes, and it takes none in that epoch yet. Whether it may is MayOpen's.
func (f *Facts) AwaitsOpening() bool {
	p := f.promotion()
	return p != nil && f.Server != nil && f.WritableEpoch != p.Epoch && (f.appliesAsPrimary(p) || f.hasApplied(p))
}

// receiveMissing has the instance receive what it must have before it opens, or tells that
// it cannot. In a switchover the last transactions may still be at the former primary, which
// is read-only by now.
func receiveMissing(f *Facts, missing gtid.Set) (Decision, bool) {
	r := f.Server.Replication
	switch {
	case r == nil, f.NoReceivingBelow >= f.promotion().Epoch && !f.receiving():
		return tell(core.Running, core.InstanceTransactionsMissing, "cannot be promoted: it lacks "+
			missing.Abbreviate(4)+", which it must have")
	case !f.receiving():
		return tell(core.Running, core.InstancePromoting, "receives "+missing.Abbreviate(4), StartReceiving{})
	case !r.SQLRunning:
		return tell(core.Running, core.InstancePromoting, "receives "+missing.Abbreviate(4), StartApplying{},
			WaitApplied{Set: missing, Alone: true})
	}
	return tell(core.Running, core.InstancePromoting, "receives "+missing.Abbreviate(4),
		WaitApplied{Set: missing, Alone: true})
}

// Publishes reports whether the instance has to write itself into the Cluster's status as its
// primary: it takes writes, is permitted to, and the status does not say so yet.
func (f *Facts) Publishes() bool {
	return f.WritableEpoch != 0 && f.Permitted() && f.Cluster.Epoch == f.WritableEpoch &&
		f.Cluster.CurrentPrimary != f.Me
}

// Promotes reports whether the Cluster's promotion is that of an instance, in an epoch.
func (c *Cluster) Promotes(instance string, epoch int64) bool {
	return c.Promotion != nil && c.Promotion.Epoch == epoch && c.Promotion.Instance == instance
}

// Promoted names the instance that is promoted, as far as is known; "" for none.
func (f *Facts) Promoted() string {
	if p := f.promotion(); p != nil {
		return p.Instance
	}
	return ""
}
