package sim

import (
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// pastOrder was given at a moment.
type pastOrder struct {
	at time.Duration
	control.Order
}

// order carries out an order of the operator's; done is called when it is.
func (m *manager) order(o control.Order, done func(err string)) {
	if no := m.admit(o); no != nil {
		m.w.cover.count("order", string(no.Reason))
		done(string(no.Reason))
		return
	}
	if m.w.story.on {
		m.tell("is ordered to %s %+v", o.Verb(), o)
	}
	m.w.cover.count("order", string(o.Verb()))
	m.orders = append(m.orders[max(0, len(m.orders)-20):], pastOrder{m.w.now, o})
	if _, restarts := o.(control.RestartInPlace); m.volume.stalled && !restarts {
		return // what is promised has to be written first: nobody answers
	}
	switch o := o.(type) {
	case control.Demote:
		m.orderDemote(o.Epoch, done)
	case control.ReceivePromise:
		m.orderReceivePromise(o.Epoch, done)
	case control.CloneFrom:
		m.orderClone(o.Donor, done)
	case control.RestartInPlace:
		m.restart = max(m.restart, o.Epoch)
		m.vouches.noteStart(m.proc, word{m.w.now, o.Epoch})
		m.update()
		done("")
	case control.SetAcks:
		m.worker.submit(func(over func()) {
			if no := agent.RefusesAsPrimary(m.writable, o.Epoch); no != nil {
				done(string(no.Reason))
				over()
				return
			}
			a := agent.Awaits{Epoch: o.Epoch, Acks: o.Acks, Order: o.Number}
			if no := m.volume.record.promised().Refuses(a); no != nil && !m.w.mut.AcksUnnumbered {
				m.w.cover.count("order", string(no.Reason))
				done(string(no.Reason))
				over()
				return
			}
			m.requireAcks(a, agent.AcksOrderLimit, func(err string) { done(err); over() })
		})
	default:
		m.w.fail("model", "the model does not know the order %s", o.Verb())
	}
}

// admit refuses what is not to be obeyed, and takes note of the order's epoch.
func (m *manager) admit(o control.Order) *core.Problem {
	if no := m.standing().Refuses(o.OfEpoch()); no != nil {
		return no
	}
	m.seen = o.OfEpoch()
	m.announce()
	return nil
}

func (m *manager) standing() agent.Standing {
	s := agent.Standing{Seen: m.seen, Locked: m.locked, Adopted: m.view != nil, Data: m.data,
		Activity: m.activity, Donor: m.donor}
	s.Locked = s.Locked || m.w.mut.PromiseWithoutLock
	return s
}

// orderDemote promises before it acts.
func (m *manager) orderDemote(epoch int64, done func(string)) {
	r := &m.volume.record
	r.noWritesBelow = max(r.noWritesBelow, epoch)
	m.update()
	m.worker.submit(func(over func()) {
		end := func(err string) { done(err); over() }
		switch {
		case !agent.MustStopFor(epoch, m.writable, m.activity), m.w.mut.PromiseOnly:
			end("")
		default:
			m.stopWrites(end)
		}
	})
}

// orderReceivePromise stops receiving, and says so only when it has stopped.
func (m *manager) orderReceivePromise(epoch int64, done func(string)) {
	r := &m.volume.record
	r.noReceivingBelow = max(r.noReceivingBelow, epoch)
	m.update()
	m.worker.submit(func(over func()) {
		end := func(err string) {
			if err == "" && agent.BeginsToWithhold(m.withheld, epoch) { // the promise is kept from now on
				m.withheld, m.withheldAt = epoch, m.w.now
				m.update()
			}
			done(err)
			over()
		}
		switch {
		case m.facts().ReceivesNothing(), m.w.mut.FreezeOnPaper:
			end("")
		default:
			m.statement(agent.ReceiveStopLimit, func(s *mysqld) { s.io.stop(); s.changed() }, end)
		}
	})
}

func (m *manager) orderClone(donor string, done func(string)) {
	if no := m.standing().RefusesCopy(donor); no != nil {
		done(string(no.Reason))
		return
	}
	m.donor = donor
	m.worker.wake()
	done("")
}
