package whatif

import (
	"reflect"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// catchUpNote is how many transactions a replica may lack without a word about how
// long it takes to apply them.
const catchUpNote = 200

// carryOut does what an effect does; true when something is not as before. Instances
// are neither made nor copied here: that takes longer than is asked about.
func (m *model) carryOut(e core.Effect) bool {
	switch e := e.(type) {
	case core.Demote:
		return m.order(e.Instance, e.Epoch, m.demote)
	case core.ReceivePromise:
		return m.order(e.Instance, e.Epoch, m.freeze)
	case core.SetAcks:
		return m.order(e.Instance, e.Epoch, func(t *manager, _ int64) { m.setAcks(t, e) })
	case core.AdoptTransactions:
		return false // what others did on their own is no part of the question
	case core.RestartInPlace:
		return m.order(e.Instance, e.Epoch, func(t *manager, _ int64) { run(t.restart) })
	case core.SeizeLease:
		return m.writeLease(e.Version, e.Epoch)
	case core.ResetLease:
		return m.writeLease(e.Version, e.Epoch)
	case core.CreatePod:
		t := m.managers[e.Instance]
		if t == nil || t.pod == nil {
			return false
		}
		t.pod(e.Awaited)
		t.pod = nil
		return true
	case core.RouteWrites:
		m.o.Cluster.Routed = core.Known(e.Instance, m.o.Now, m.o.Now)
		return true
	case core.BindReinit:
		m.o.Cluster.Reinit = core.BoundReinit(m.o.Cluster.Reinit, e.Request)
		return true
	case core.ClearReinit:
		m.o.Cluster.Reinit = core.WithoutReinit(m.o.Cluster.Reinit, e.Instance)
		return true
	case core.ClearOverride:
		m.o.Cluster.Override = nil
		return true
	case core.LabelPod:
		return m.label(e.Instance, func(p *core.Pod) { p.Role, p.Routable = e.Role, e.Routable })
	case core.ClearDemote:
		return m.label(e.Instance, func(p *core.Pod) { p.DemoteRequested = false })
	default:
		return false
	}
}

func run(f func()) {
	if f != nil {
		f()
	}
}

func (m *model) label(name string, change func(*core.Pod)) bool {
	in := m.o.Instance(name)
	if in == nil {
		return false
	}
	pod, known := in.Pod.Get()
	before := pod
	change(&pod)
	if known {
		in.Pod = core.Known(pod, m.o.Now, m.o.Now)
	}
	return known && before != pod
}

// order has a manager do something, if the order can reach it and it obeys.
func (m *model) order(name string, epoch int64, act func(*manager, int64)) bool {
	t := m.managers[name]
	if t == nil || !t.reachable || t.dead || t.standing().Refuses(epoch) != nil {
		return false
	}
	before, coming := own(t.report), len(m.coming)
	t.report.SeenEpoch = epoch
	act(t, epoch)
	return !reflect.DeepEqual(before, own(t.report)) || coming != len(m.coming)
}

// demote has an instance promise to take no writes below the epoch, and then, where it must, makes its
// mysqld read-only and closes all its clients. A mysqld that hangs is killed.
func (m *model) demote(t *manager, epoch int64) {
	r := &t.report
	r.NoWritesBelow = max(r.NoWritesBelow, epoch)
	if !agent.MustStopFor(epoch, r.WritableEpoch, t.activity()) {
		return
	}
	r.WritableEpoch, r.ClientSessions = 0, 0
	if r.State == core.Hung {
		r.State, r.Server = core.Stopped, nil
	}
	if r.Server != nil {
		r.Server.SuperReadOnly = true
	}
	run(t.rejoin)
}

func (m *model) freeze(t *manager, epoch int64) {
	r := &t.report
	if !r.Withholds(epoch) {
		r.Withheld, t.withheldAt = &core.Withheld{Below: epoch}, m.o.Now
	}
	r.NoReceivingBelow = max(r.NoReceivingBelow, epoch)
	if r.Server != nil && r.Server.Replication != nil {
		r.Server.Replication.IORunning, r.Server.Replication.IOConnecting,
			r.Server.Replication.Silent = false, false, false
	}
}

func (m *model) setAcks(t *manager, e core.SetAcks) {
	if t.report.Server == nil || agent.RefusesAsPrimary(t.report.WritableEpoch, e.Epoch) != nil {
		return
	}
	s := &t.report.Server.SemiSync
	promised := agent.Promised{Epoch: s.OrderEpoch, Order: s.Order}
	if promised.Refuses(agent.Awaits{Epoch: e.Epoch, Acks: e.Acks, Order: e.Order}) != nil {
		return
	}
	s.Acks, s.Order, s.OrderEpoch = e.Acks, e.Order, e.Epoch
	s.SourceEnabled, s.SourceActive = e.Acks > 0, e.Acks > 0
	s.Blocks = m.o.Cluster.Durability.Mode.WaitsForEver()
}

// writeLease leaves the record to nobody.
func (m *model) writeLease(version string, epoch int64) bool {
	l, known := m.o.Cluster.Lease.Get()
	if !known || l.Version != version {
		return false
	}
	m.putLease(core.Lease{Epoch: epoch, Version: version + "-seized"})
	return true
}

// converge has the managers do by themselves what the status permits. It reports whether one of
// them did something.
func (m *model) converge() bool {
	changed := false
	for i := range m.o.Instances {
		t := m.managers[m.o.Instances[i].Name]
		if !m.isAlive(t.name) {
			continue
		}
		before := own(t.report)
		if t.name == m.promotion().Instance {
			m.open(t)
		} else {
			m.follow(t)
		}
		changed = changed || !reflect.DeepEqual(before, own(t.report))
	}
	return changed
}

// isAlive reports whether the instance's mysqld runs with data and can be reached.
func (m *model) isAlive(name string) bool {
	t := m.managers[name]
	return t != nil && t.reachable && !t.dead && t.report.State == core.Running &&
		t.report.Data == core.DataPopulated && t.report.Server != nil
}

// open lets the holder of the promotion take writes in its epoch, if the rules of the instances permit it.
func (m *model) open(t *manager) {
	p, r := m.promotion(), &t.report
	if m.facts(t).AwaitsOpening() && !r.Terminating && m.mayOpen(t, p.Epoch) {
		r.WritableEpoch, r.Follows, r.Server.SuperReadOnly = p.Epoch, p.Follows, p.FollowsServer()
		r.Server.SemiSync.Order, r.Server.SemiSync.OrderEpoch = p.AcksOrder, p.Epoch
	}
	if r.TakesWrites() {
		r.Server.SemiSync.Clients = m.attached(t.name)
	}
}

// follow lets a replica whose source runs receive and apply all that the source has.
func (m *model) follow(t *manager) {
	r, holder := &t.report, m.promotion().Instance
	rep := r.Server.Replication
	if rep == nil || !core.IsHostOf(rep.SourceHost, holder) || m.facts(t).IsFrozen() || !m.isAlive(holder) {
		return
	}
	if rep.IOConnecting {
		rep.IORunning, rep.IOConnecting, rep.IOError = true, false, ""
	}
	if !rep.IORunning || !rep.SQLRunning || rep.SQLError != "" {
		return
	}
	all := m.managers[holder].report.Server.Executed
	if lacks := all.Subtract(r.Server.Executed).Count(); lacks > catchUpNote {
		m.assume("%s lacks %d transactions; how long it takes to apply them is not known, and not counted",
			t.name, lacks)
	}
	r.Server.Executed = r.Server.Holds().Union(all)
}
