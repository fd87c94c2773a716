package async

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// The managers of the model go by the rules of package agent, as those of the product do: here they gather
// what the rules ask for, and carry out what they say.

// mind is what a manager knows by which it decides, and what its report does not tell.
type mind struct {
	// view is the Cluster as it was seen, nil before it was; latest, how far it was seen to get.
	view   *agent.Cluster
	latest agent.Latest
	// leaseEpoch is that at which it holds the lease, 0 if not, and renewedAt when it was renewed last.
	leaseEpoch int64
	renewedAt  time.Time
	vouches    agent.Vouches
	// alone is since when it must isolate itself; zero while it need not.
	alone time.Time
}

// shift moves what was noted by a clock that shows another time by now.
func (m *mind) shift(by time.Duration) {
	m.renewedAt, m.alone = moved(m.renewedAt, by), moved(m.alone, by)
	for name, at := range m.vouches.Last {
		m.vouches.Last[name] = moved(at, by)
	}
}

func moved(at time.Time, by time.Duration) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(by)
}

// see has a manager take what the Cluster says. A status of the past is as good as none.
func (w *world) see(in *inst) {
	c, s := &w.cluster, w.cluster.Status
	next := &agent.Cluster{FirstData: c.FirstData, Generation: c.Generation, Instances: c.Wanted,
		Durability: c.Durability.Mode, Topology: c.Topology, Lease: c.PrimaryLease, MaxStart: time.Hour,
		MaxStop: time.Hour}
	if next.FirstData == core.OriginNone {
		next.FirstData = core.OriginInitialized
	}
	next.TakeStatus(&s, in.name)
	in.view = in.latest.Take(in.view, next)
	in.truth.SeenEpoch = max(in.truth.SeenEpoch, in.view.Epoch)
}

// facts are what a manager knows.
func (w *world) facts(in *inst) *agent.Facts {
	r := &in.truth
	f := &agent.Facts{Now: w.now, Me: in.name, PodUID: r.PodUID, Node: r.Node, Cluster: in.view,
		Locked: r.VolumeLocked, Data: r.Data, NoWritesBelow: r.NoWritesBelow, NoReceivingBelow: r.NoReceivingBelow,
		WritableEpoch: r.WritableEpoch, Activity: in.activity(), LeaseEpoch: in.leaseEpoch,
		LeaseRenewed: in.renewedAt, Vouches: in.vouches.Of(in.view), Mysqld: in.mysqld(w.now)}
	if f.Mysqld.Answers {
		f.Server = r.Server
	}
	return f
}

// mysqld is what a manager knows of its process.
func (in *inst) mysqld(now time.Time) agent.Mysqld {
	m := agent.Mysqld{MayWrite: in.truth.WritableEpoch != 0}
	switch in.truth.State {
	case core.Running, core.AwaitingClone, core.Cloning:
		m.Up, m.Accepted, m.Answers, m.AnsweredAt = true, true, true, now
	case core.Hung:
		m.Up, m.Accepted = true, true
	case core.Recovering:
		m.Up = true
	}
	return m
}

func (in *inst) activity() agent.Activity {
	if in.truth.State == core.Cloning {
		return agent.Cloning
	}
	return agent.NoActivity
}

// standing is what tells whether a manager obeys.
func (in *inst) standing() agent.Standing {
	s := agent.Standing{Seen: in.truth.SeenEpoch, Locked: in.truth.VolumeLocked, Adopted: in.view != nil,
		Data: in.truth.Data, Activity: in.activity()}
	if in.truth.Clone != nil {
		s.Donor = in.truth.Clone.Donor
	}
	return s
}

// takeLease reports whether the record was there to be taken for an epoch, and takes it.
func (w *world) takeLease(in *inst, epoch int64) bool {
	if agent.LeaseRefused(in.name, epoch, w.lease.Holder, w.lease.Epoch) != "" {
		return false
	}
	w.writeLease(in.name, epoch)
	in.leaseEpoch, in.renewedAt = epoch, w.now
	return true
}

// mayOpen reports whether an instance may take writes in an epoch. It takes the lease first, where there is one.
func (w *world) mayOpen(in *inst, epoch int64) bool {
	return (!in.view.Leased() || w.takeLease(in, epoch)) && w.facts(in).MayOpen(epoch)
}

// tendLease does what a manager has to do about the lease, while it reaches the API server, and stops writes
// when it must: as late as it may.
func (w *world) tendLease(in *inst) {
	if !in.pod.Exists || in.pod.Terminated {
		return
	}
	w.askPeers(in)
	if !in.cut {
		w.keepLease(in)
	}
	switch {
	case !w.facts(in).MustIsolateItself():
		in.alone = time.Time{}
	case in.alone.IsZero():
		in.alone = w.now
	case w.now.Sub(in.alone) >= core.IsolationLimit:
		in.stopWrites()
	}
}

func (w *world) keepLease(in *inst) {
	lost := agent.IsLeaseLost(in.name, in.leaseEpoch, w.lease.Holder, w.lease.Epoch)
	switch w.facts(in).LeaseDuty() {
	case agent.RenewLease:
		if lost || !w.takeLease(in, in.leaseEpoch) {
			in.leaseEpoch, in.renewedAt = 0, time.Time{}
		}
	case agent.ReleaseLease:
		if agent.MayRelease(in.name, in.leaseEpoch, w.lease.Holder, w.lease.Epoch) {
			w.writeLease("", 0)
		}
		in.leaseEpoch, in.renewedAt = 0, time.Time{}
	}
}

// askPeers asks those whom an instance reaches whether they count on it.
func (w *world) askPeers(in *inst) {
	f := w.facts(in)
	if !f.NeedsVouches() || in.cut {
		return
	}
	epoch := f.Cluster.Promotion.Epoch
	for _, peer := range w.insts {
		if peer != in && !peer.cut && peer.pod.Exists && !peer.pod.Terminated &&
			agent.Vouch(w.facts(peer), in.name, epoch) == nil {
			in.vouches.Note(epoch, peer.name, w.now)
		}
	}
}

// stopWrites has an instance take no more writes. A mysqld that does not answer is killed for that.
func (in *inst) stopWrites() {
	r := &in.truth
	r.WritableEpoch, in.alone = 0, time.Time{}
	if r.Server != nil {
		r.Server.SuperReadOnly = true
	}
	if r.State == core.Hung {
		r.State = core.Stopped
	}
}

// setAcks has a primary wait for as many acknowledgements as it is told to.
func (in *inst) setAcks(e core.SetAcks) {
	if agent.RefusesAsPrimary(in.truth.WritableEpoch, e.Epoch) != nil {
		return
	}
	semi := &in.truth.Server.SemiSync
	promised := agent.Promised{Epoch: semi.OrderEpoch, Order: semi.Order}
	if promised.Refuses(agent.Awaits{Epoch: e.Epoch, Acks: e.Acks, Order: e.Order}) != nil {
		return
	}
	semi.SourceEnabled, semi.SourceActive, semi.Acks = e.Acks > 0, e.Acks > 0, e.Acks
	semi.Order, semi.OrderEpoch, semi.Blocks = e.Order, e.Epoch, in.view.WaitsForEver()
}

// TestTheOperatorAndAnInstanceAskTheSameOfAPromotion holds what both ask together: what the operator takes for able to
// go on, the instance itself permits as soon as it has its volume and sees the epoch, and nothing else.
func TestTheOperatorAndAnInstanceAskTheSameOfAPromotion(t *testing.T) {
	for _, named := range []core.Promotion{{PodUID: "a", Node: "n1"}, {PodUID: "a"}, {}, {Node: "n1"}} {
		for _, r := range []core.Report{{PodUID: "a", Node: "n1"}, {PodUID: "b", Node: "n1"}, {PodUID: "b", Node: "n2"},
			{PodUID: "b"}} {
			for _, below := range []int64{0, 4, 5} {
				p := named
				p.Instance, p.Epoch, r.NoWritesBelow = "db-1", 4, below
				f := agent.Facts{Me: "db-1", PodUID: r.PodUID, Node: r.Node, NoWritesBelow: below, Locked: true,
					Cluster: &agent.Cluster{Epoch: 4, Promotion: &p}}
				if permits, goesOn := f.Permitted(), mayGoOn(r, &p); permits != goesOn {
					t.Errorf("promoted %+v, is %q on %q, none below %d: permits itself %t, the operator says %t",
						named, r.PodUID, r.Node, below, permits, goesOn)
				}
				f.Locked = false
				if f.Permitted() {
					t.Error("an instance without the lock permits itself to take writes")
				}
			}
		}
	}
}
