package sim

import (
	"time"

	"cnmsql.co/internal/core/agent"
)

// leaseState is what a manager knows of its lease.
type leaseState struct {
	epoch   int64
	renewed time.Duration // when the renewal was sent
	busy    bool
	ticking bool
}

// acquireLease takes the record for an epoch. One of a lower epoch may be taken
// over: the promotion carries the proof that its holder cannot write any more.
func (m *manager) acquireLease(epoch int64, done func(string)) {
	sent := m.w.now
	m.w.call(m.machine, apiMachine, agent.CallLimit, func(reply func(func())) {
		why := m.w.api.takeLease(m.me, epoch)
		reply(func() {
			if m.dead {
				return
			}
			if why != "" {
				done(why)
				return
			}
			m.confirmPromotion(epoch, func(why string) {
				switch why {
				case "":
					m.lease.epoch, m.lease.renewed = epoch, sent
				case epochEnded:
					m.lease.epoch = epoch
					m.releaseLease(func() { done(why) })
					return
				}
				done(why)
			})
		})
	}, func() {
		if !m.dead {
			done("taking the lease: the API server does not answer")
		}
	})
}

const epochEnded = "that epoch has ended"

// confirmPromotion reads the Cluster from the API server: a view that is behind may permit
// what is of the past.
func (m *manager) confirmPromotion(epoch int64, done func(string)) {
	m.w.call(m.machine, apiMachine, agent.CallLimit, func(reply func(func())) {
		p := m.w.api.cluster().status.Promotion
		reply(func() {
			switch {
			case m.dead:
			case !(&agent.Cluster{Promotion: p}).Promotes(m.me, epoch):
				done(epochEnded)
			default:
				m.confirmed = epoch
				done("")
			}
		})
	}, func() {
		if !m.dead {
			done("confirming the promotion: the API server does not answer")
		}
	})
}

// makeLease makes the record, which only the operator may, where there is none.
func (a *apiServer) makeLease() {
	if a.lease() == nil {
		a.put(kindLease, "primary", &leaseObject{uid: a.w.name("lease")})
	}
}

// takeLease is the read and the conditional write as one.
func (a *apiServer) takeLease(who string, epoch int64) string {
	l := a.lease()
	if l == nil {
		return "taking the lease: the operator makes it first, and has not yet"
	}
	if why := agent.LeaseRefused(who, epoch, l.holder, l.epoch); why != "" {
		return "taking the lease: " + why
	}
	n := *l
	n.holder, n.epoch = who, epoch
	n.renewals++
	a.put(kindLease, "primary", &n)
	return ""
}

// tendLease renews the lease while mysqld is writable and answers, and gives it
// back once nothing can be written any more.
func (m *manager) tendLease() {
	if m.writable != 0 || m.lease.epoch != 0 {
		m.at(agent.LeaseLook, m.tendLease)
		m.lookAtLease()
		return
	}
	m.lease.ticking = false
}

// wakeLease looks at the Lease, the vouches and the isolation again, because something has changed
// that the Lease follows. It starts their clocks where they stand.
func (m *manager) wakeLease() {
	if !m.lease.ticking {
		m.lease.ticking = true
		m.at(agent.LeaseLook, m.tendLease)
	}
	m.keepVouched()
	m.keepIsolating()
	m.at(10*time.Millisecond, func() { m.lookAtLease() })
}

func (m *manager) lookAtLease() {
	if m.lease.busy {
		return
	}
	f := m.facts()
	if m.w.mut.HungRenews {
		f.Mysqld.Up, f.Mysqld.DiskStalled, f.Mysqld.AnsweredAt = true, false, f.Now
	}
	switch f.LeaseDuty() {
	case agent.ReleaseLease:
		m.lease.busy = true
		m.releaseLease(func() { m.lease.busy = false })
	case agent.RenewLease:
		m.renewLease(m.lease.epoch)
	}
}

func (m *manager) renewLease(epoch int64) {
	m.lease.busy = true
	sent := m.w.now
	m.w.call(m.machine, apiMachine, agent.CallLimit, func(reply func(func())) {
		l := m.w.api.lease()
		lost := l != nil && agent.IsLeaseLost(m.me, epoch, l.holder, l.epoch)
		if l != nil && !lost {
			m.w.api.takeLease(m.me, epoch)
		}
		reply(func() {
			m.lease.busy = false
			switch {
			case !agent.TakesLease(m.lease.epoch, epoch):
			case lost:
				m.lease.epoch, m.lease.renewed = 0, 0
			case l != nil:
				m.lease.epoch, m.lease.renewed = epoch, sent
			}
		})
	}, func() { m.lease.busy = false })
}

// releaseLease leaves the record to nobody and to no epoch if it is ours.
func (m *manager) releaseLease(done func()) {
	if m.lease.epoch == 0 {
		done()
		return
	}
	epoch := m.lease.epoch
	m.w.call(m.machine, apiMachine, agent.CallLimit, func(reply func(func())) {
		if l := m.w.api.lease(); l != nil && agent.MayRelease(m.me, epoch, l.holder, l.epoch) {
			m.w.api.put(kindLease, "primary", &leaseObject{uid: l.uid})
		}
		reply(func() {
			if agent.EndsLease(m.lease.epoch, epoch) {
				m.lease.epoch, m.lease.renewed = 0, 0
			}
			if !m.dead {
				done()
			}
		})
	}, func() {
		if !m.dead {
			done()
		}
	})
}

// publish writes this instance into the Cluster's status as its primary, once it
// is writable.
func (m *manager) publish() {
	if !m.facts().Publishes() {
		return
	}
	w := m.w
	w.call(m.machine, apiMachine, agent.CallLimit, func(reply func(func())) {
		s := w.api.cluster().status
		f := *m.facts()
		now := agent.Cluster{Lease: f.Cluster.Lease, Instances: f.Cluster.Instances}
		now.TakeStatus(&s, m.me)
		f.Cluster = &now
		if f.Publishes() {
			at := w.clockOf(m.machine)
			w.api.updateCluster(0, func(c *clusterObject) {
				c.status.CurrentPrimary,
					c.status.CurrentPrimaryAt = m.me, kept(at)
			})
		}
		reply(func() { m.at(agent.PublishRetry, m.publish) })
	}, func() { m.at(agent.PublishRetry, m.publish) })
}
