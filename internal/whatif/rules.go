package whatif

import (
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// The managers of this model go by the rules of package agent, as those of the product do: here they gather what the
// rules ask for. Each of them sees the Cluster at once.

// view is the Cluster as an instance sees it.
func (m *model) view(me string) *agent.Cluster {
	c := &m.o.Cluster
	v := &agent.Cluster{Generation: c.Generation, Instances: c.Wanted, Durability: c.Durability.Mode,
		Topology: c.Topology, Lease: c.PrimaryLease}
	v.TakeStatus(&c.Status, me)
	return v
}

// facts are what a manager knows, as far as this model asks its rules.
func (m *model) facts(t *manager) *agent.Facts {
	r := &t.report
	return &agent.Facts{Now: m.o.Now, Me: t.name, PodUID: r.PodUID, Node: r.Node, Cluster: m.view(t.name),
		Locked: r.VolumeLocked, Foreign: t.isForeign(), Data: r.Data, NoWritesBelow: r.NoWritesBelow,
		NoReceivingBelow: r.NoReceivingBelow, WritableEpoch: r.WritableEpoch, Activity: t.activity(),
		LeaseEpoch: t.leaseEpoch, LeaseRenewed: t.renewedAt, Server: r.Server}
}

// standing is what tells whether a manager obeys.
func (t *manager) standing() agent.Standing {
	s := agent.Standing{Seen: t.report.SeenEpoch, Locked: t.report.VolumeLocked, Foreign: t.isForeign(), Adopted: true,
		Data: t.report.Data, Activity: t.activity()}
	if t.report.Clone != nil {
		s.Donor = t.report.Clone.Donor
	}
	return s
}

// isForeign reports whether the manager says that the volume is not its instance's.
func (t *manager) isForeign() bool { return t.report.Reason == core.InstanceForeignData }

func (t *manager) activity() agent.Activity {
	if t.report.State == core.Cloning {
		return agent.Cloning
	}
	return agent.NoActivity
}

// mayOpen reports whether an instance may take writes in an epoch. It takes the lease first, where there is one.
func (m *model) mayOpen(t *manager, epoch int64) bool {
	f := m.facts(t)
	return f.Permitted() && (!f.Cluster.Leased() || m.takeLease(t, epoch)) && m.facts(t).MayOpen(epoch)
}

// takeLease reports whether the record was there to be taken for an epoch, and takes it.
func (m *model) takeLease(t *manager, epoch int64) bool {
	l, known := m.o.Cluster.Lease.Get()
	switch {
	case !known:
		m.assume("nothing is known of the lease: that %s gets it is assumed", t.name)
	case agent.LeaseRefused(t.name, epoch, l.Holder, l.Epoch) != "":
		return false
	default:
		m.putLease(core.Lease{Holder: t.name, Epoch: epoch, Version: l.Version + "-taken"})
	}
	t.leaseEpoch, t.renewedAt = epoch, m.o.Now
	return true
}

func (m *model) putLease(l core.Lease) {
	l.UnchangedSince = m.o.Now
	m.o.Cluster.Lease = core.Known(l, m.o.Now, m.o.Now)
}
