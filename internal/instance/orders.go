package instance

import (
	"context"
	"fmt"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// Order carries out an order of the operator's.
func (m *manager) Order(ctx context.Context, o control.Order) error {
	if err := m.admit(o); err != nil {
		return err
	}
	m.log.Info("the operator gave an order", "verb", o.Verb(), "order", o)
	switch o := o.(type) {
	case control.Demote:
		return m.orderDemote(o.Epoch)
	case control.ReceivePromise:
		return m.orderReceivePromise(ctx, o.Epoch)
	case control.CloneFrom:
		return m.orderClone(o.Donor)
	case control.RestartInPlace:
		m.update(func(s *state) { s.mysqld.restart = max(s.mysqld.restart, o.Epoch) })
		return nil
	case control.SetAcks:
		return m.orderAcks(ctx, o)
	case control.AdoptTransactions:
		return m.orderAdopt(ctx, o)
	case control.SetGroupPrimary:
		return m.membership.orderGroupPrimary(o.Member, o.Within)
	case control.ForceMembers:
		return m.membership.orderForceMembers(ctx, o)
	case control.RebootGroup:
		return m.membership.orderReboot(o.Epoch)
	default:
		return refusal(core.OrderUnknown, "this manager knows no order %q; it may be older than the operator", o.Verb())
	}
}

func refusal(reason core.Reason, format string, args ...any) error {
	return &control.Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// admit refuses what is not to be obeyed, and takes note of the order's epoch.
func (m *manager) admit(o control.Order) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if no := m.standing().Refuses(o.OfEpoch()); no != nil {
		return refusal(no.Reason, "%s: %s", o.Verb(), no.Message)
	}
	m.st.cluster.seen = o.OfEpoch()
	m.announce()
	return nil
}

// standing is what tells whether this instance obeys; the mutex is held.
func (m *manager) standing() agent.Standing {
	s := &m.st
	return agent.Standing{Seen: s.cluster.seen, Locked: s.volume.locked, Foreign: s.volume.foreign,
		Adopted: m.isAdopted(), Data: s.volume.data, Activity: m.activities.current(), Donor: m.cloner.said().donor}
}

// isAdopted reports whether the volume is known to be the present Cluster's; the mutex is held.
func (m *manager) isAdopted() bool {
	return m.st.cluster.object != nil && m.record.get().ClusterUID == string(m.st.cluster.object.UID)
}

// orderDemote promises before it acts: a crash in between must not forget it. It
// is carried out even if the caller goes away.
func (m *manager) orderDemote(epoch int64) error {
	err := m.record.change(func(r *volumeRecord) { r.NoWritesBelow = max(r.NoWritesBelow, epoch) })
	if err != nil {
		return err
	}
	m.update(func(*state) {})
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	return m.worker.submit(ctx, func() error {
		if !agent.MustStopFor(epoch, m.writable(), m.facts().Activity) {
			return nil
		}
		return m.stopWrites()
	})
}

// orderReceivePromise promises to receive nothing and to vouch for nobody, and says so
// only when nothing is received any more.
func (m *manager) orderReceivePromise(ctx context.Context, epoch int64) error {
	err := m.record.change(func(r *volumeRecord) { r.NoReceivingBelow = max(r.NoReceivingBelow, epoch) })
	if err != nil {
		return err
	}
	m.update(func(*state) {})
	ctx, cancel := context.WithTimeout(ctx, agent.ReceiveStopLimit)
	defer cancel()
	return m.worker.submit(ctx, func() error {
		if m.facts().ReceivesNothing() {
			m.noteWithheld(epoch)
			return nil
		}
		if err := m.topology().receiveNothing(ctx); err != nil {
			return err
		}
		m.noteWithheld(epoch)
		return nil
	})
}

// stopReceiving returns when nothing is received any more.
func (m *manager) stopReceiving(ctx context.Context) error {
	if err := m.roles.StopReceiving(ctx); err != nil {
		return err
	}
	r, err := m.roles.Replication(ctx)
	if err != nil {
		return err
	}
	if r != nil && (r.IORunning || r.IOConnecting) {
		return fmt.Errorf("stopping to receive: the receiving thread still runs")
	}
	return nil
}

// noteWithheld notes that the promise to receive nothing below an epoch is kept from now on.
func (m *manager) noteWithheld(epoch int64) {
	m.update(func(s *state) {
		if agent.BeginsToWithhold(s.volume.withheld, epoch) {
			s.volume.withheld, s.volume.withheldAt = epoch, time.Now()
		}
	})
}

func (m *manager) orderClone(donor string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if no := m.standing().RefusesCopy(donor); no != nil {
		return refusal(no.Reason, "%s", no.Message)
	}
	m.cloner.order(donor)
	poke(m.wake)
	return nil
}

// orderAcks sets the acknowledgements of the primary of this very epoch.
func (m *manager) orderAcks(ctx context.Context, o control.SetAcks) error {
	ctx, cancel := context.WithTimeout(ctx, agent.AcksOrderLimit)
	defer cancel()
	return m.worker.submit(ctx, func() error {
		if no := agent.RefusesAsPrimary(m.writable(), o.Epoch); no != nil {
			return refusal(no.Reason, "%s", no.Message)
		}
		a := agent.Awaits{Epoch: o.Epoch, Acks: o.Acks, Order: o.Number}
		if no := m.acks.promised().Refuses(a); no != nil {
			return refusal(no.Reason, "%s", no.Message)
		}
		return m.acks.requireAcks(ctx, a)
	})
}

// orderAdopt commits empty transactions of the given numbers on the primary of this very
// epoch.
func (m *manager) orderAdopt(ctx context.Context, o control.AdoptTransactions) error {
	set, err := gtid.Parse(o.Transactions)
	if err != nil {
		return refusal(core.OrderNotUnderstood, "the transactions to adopt cannot be read: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return m.worker.submit(ctx, func() error {
		s := get(m, func(s *state) *core.Server { return s.status.server })
		no := agent.RefusesAsPrimary(m.writable(), o.Epoch)
		if no == nil && s == nil {
			no = &core.Problem{Reason: core.OrderNotPrimary, Message: "its mysqld has not answered yet"}
		}
		if no != nil {
			return refusal(no.Reason, "%s", no.Message)
		}
		all, no := agent.RefusesAdoption(set, s.UUID)
		if no != nil {
			return refusal(no.Reason, "%s", no.Message)
		}
		return m.roles.CommitEmpty(ctx, all)
	})
}
