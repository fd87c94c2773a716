package plugin

import (
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// topology is how clusters of the two modes of replication differ for their reader.
type topology interface {
	// writable tells whether clients can write: by the instances' own word, by the
	// operator's diagnosis when they were not asked.
	writable(f *Facts, d Durability) (Writable, string)
	// place adds an instance's own word of its place in the cluster.
	place(in *Instance, f *Facts, r *core.Report)
	// unproven are transactions by which a replica may be ahead of a primary that was
	// asked later, though nothing is wrong.
	unproven(c *v1alpha1.Cluster, primary *core.Server) gtid.Set
	fencing() fenceWords
}

// fenceWords tell what fencing an instance does.
type fenceWords struct {
	// pending and primary tell of an instance that is to be fenced, and of the cluster
	// when that is the primary; question is asked back then, "" for no question.
	pending, primary, question string
	// on and off tell what has begun.
	on, off string
	// refusal is why the operator may refuse it; "" where it never does.
	refusal core.Reason
}

// topologyOf is the one place at which the modes are told apart here.
func topologyOf(c *v1alpha1.Cluster) topology {
	if c.Spec.Replication.Mode == v1alpha1.ReplicationGroup {
		return group{}
	}
	return async{}
}

// async is a primary, and replicas that follow it.
type async struct{}

func (async) writable(f *Facts, d Durability) (Writable, string) {
	p := f.Cluster.Status.Promotion
	if p == nil {
		return WritableNo, "no primary was chosen yet"
	}
	r := f.live(p.Instance)
	switch {
	case r == nil:
		return writableByDiagnosis(f, p.Instance)
	case r.WritableEpoch != p.Epoch:
		return WritableNo, fmt.Sprintf("%s is %s and does not accept writes", p.Instance, describeState(r))
	case d.Acks != nil && *d.Acks > *d.Attached && core.DurabilityMode(d.Mode).WaitsForEver():
		return WritableWaiting, fmt.Sprintf("%s accepts writes, but each commit waits for %s, and %s attached",
			p.Instance, count(*d.Acks, "acknowledgement"), isAre(*d.Attached, "replica"))
	}
	return f.routed(p.Instance, fmt.Sprintf("%s accepts writes (epoch %d)", p.Instance, p.Epoch))
}

func (async) place(in *Instance, f *Facts, r *core.Report) {
	in.Role = ""
	switch p := f.Cluster.Status.Promotion; {
	case p != nil && p.Instance == in.Name && r.WritableEpoch == p.Epoch:
		in.Role = v1alpha1.RolePrimary
	case r.Server != nil && r.Server.Replication != nil:
		in.Role = v1alpha1.RoleReplica
	}
	if r.TakesWrites() && in.Role != v1alpha1.RolePrimary {
		in.note("accepts writes in epoch %d, which is not the present one", r.WritableEpoch)
	}
	if r.Server != nil && in.Role != v1alpha1.RolePrimary {
		in.fromReplication(r.Server.Replication)
	}
}

// A replica executes a transaction while the primary still waits for acknowledgements
// of it. When the primary has really lost some of its own, the operator says so.
func (async) unproven(_ *v1alpha1.Cluster, primary *core.Server) gtid.Set {
	return allOf(primary.UUID)
}

func (async) fencing() fenceWords {
	return fenceWords{
		pending: "fenced by somebody: its mysqld is to be stopped, its data is kept",
		primary: "Fencing it STOPS THE WRITES OF THE WHOLE CLUSTER: its mysqld is stopped, and no other instance is " +
			"promoted until it is unfenced.",
		question: "Stop all writes of %s? Type yes:",
		on:       "its mysqld is being stopped, its data is kept, its Pod stays and shows 0/1 ready",
		off:      "its mysqld is being started",
	}
}

// group is a MySQL group with one primary.
type group struct{}

func (group) writable(f *Facts, _ Durability) (Writable, string) {
	writers, silent := f.writers()
	s := &f.Cluster.Status
	switch primary := s.CurrentPrimary; {
	case len(writers) > 1:
		return WritableUnknown, strings.Join(writers, " and ") +
			" BOTH SAY that they are the primary of a group with a quorum; if that lasts, the group is split in two"
	case len(writers) == 1:
		return f.routed(writers[0], writers[0]+" is the primary of the group and accepts writes")
	case primary == "":
		return WritableNo, "the group has no primary yet"
	case f.live(primary) == nil:
		return writableByDiagnosis(f, primary)
	case lacksMajority(f.live(primary)):
		return WritableWaiting, primary +
			" is the primary, but has lost the majority of the group: each commit waits until the majority is back"
	case len(silent) > 0:
		return WritableUnknown, fmt.Sprintf("%s says that it is not the primary of a group with a quorum, and %s "+
			"could not be asked", primary, strings.Join(silent, ", "))
	default:
		return WritableNo, fmt.Sprintf("no instance says that it is the primary of a group with a quorum; %s is %s",
			primary, describeState(f.live(primary)))
	}
}

// writers say themselves that they are primaries whose commits succeed; silent are
// those who were asked and did not answer.
func (f *Facts) writers() (writers, silent []string) {
	for _, name := range instanceNames(&f.Cluster.Status) {
		r := f.live(name)
		v := viewOf(r)
		switch {
		case r == nil && f.Live[name].Problem != "":
			silent = append(silent, name)
		case r != nil && r.TakesWrites() && v.State == core.MemberOnline &&
			v.Role == core.MemberPrimary && v.HasQuorum():
			writers = append(writers, name)
		}
	}
	return writers, silent
}

// viewOf is an instance's own word about its group: that it is in none, where it says
// nothing of one.
func viewOf(r *core.Report) *core.GroupView {
	if r == nil || r.Server == nil || r.Server.Group == nil {
		return &core.GroupView{State: core.MemberOffline}
	}
	return r.Server.Group
}

func lacksMajority(r *core.Report) bool {
	v := viewOf(r)
	return v.IsSurvivor()
}

func (group) place(in *Instance, f *Facts, r *core.Report) {
	v := viewOf(r)
	in.Role, in.Member = "", string(v.State)
	if v.State != core.MemberOnline {
		return
	}
	in.Role = map[core.MemberRole]string{core.MemberPrimary: v1alpha1.RolePrimary,
		core.MemberSecondary: v1alpha1.RoleReplica}[v.Role]
	if lag, follows := r.Server.Lag(); follows {
		in.Lag = &lag
	}
	for _, m := range v.Members {
		name := instanceIn(m.Host)
		if m.Role == core.MemberPrimary && m.State == core.MemberOnline && name != f.Cluster.Status.CurrentPrimary {
			in.note("says that the primary is %s, and the operator says %s", name,
				orElse(f.Cluster.Status.CurrentPrimary, "nobody"))
		}
	}
}

// Members commit a transaction of the group each in its own time. One that was cut off
// with transactions that the others lack finds that out itself before it joins.
func (group) unproven(c *v1alpha1.Cluster, primary *core.Server) gtid.Set {
	out := allOf(primary.UUID)
	if g := c.Status.GroupReplication; g != nil {
		out = out.Union(allOf(g.GroupName))
	}
	return out
}

func (group) fencing() fenceWords {
	return fenceWords{
		pending: "fenced by somebody: it is to leave the group; its mysqld runs on, read-only",
		primary: "Fencing it makes it leave the group: its sessions end, and the group elects another primary.",
		on:      "it leaves the group, its mysqld runs on read-only, its Pod stays and shows 0/1 ready",
		off:     "it joins the group again",
		refusal: core.RefusalFenceQuorum,
	}
}

// allOf are all transactions of a source; none when its name is no UUID.
func allOf(uuid string) gtid.Set {
	all, err := gtid.Parse(uuid + ":1-9223372036854775806")
	if err != nil {
		return gtid.Set{}
	}
	return all
}

// routed returns whether clients reach the instance that accepts writes: they do if the Service
// leads there. A Service that is not there, or could not be read, is not held against it. because
// is why that instance accepts writes.
func (f *Facts) routed(writer, because string) (Writable, string) {
	if to := f.routedTo(); to != writer && f.ReadWrite != nil {
		return WritableNo, fmt.Sprintf("%s, but the Service %s does not lead to it yet (it leads to %s)", because,
			f.ReadWrite.Name, orElse(to, "nobody"))
	}
	return WritableYes, because
}

// groupOf puts the group in words, as the operator saw it last; nil where there is none.
func groupOf(c *v1alpha1.Cluster) *Group {
	if c.Spec.Replication.Mode != v1alpha1.ReplicationGroup {
		return nil
	}
	s := &c.Status
	out := &Group{Primary: s.CurrentPrimary, Wanted: int(c.Spec.Instances), Consistency: "BEFORE_ON_PRIMARY_FAILOVER"}
	if g := c.Spec.Replication.GroupReplication; g != nil {
		out.Consistency = orElse(g.Consistency, out.Consistency)
	}
	g := s.GroupReplication
	if g == nil {
		return out
	}
	out.Name, out.Bootstrapped, out.HasQuorum, out.ViewID = g.GroupName, g.Bootstrapped, g.HasQuorum, g.ViewID
	out.Primary = orElse(g.PrimaryMember, out.Primary)
	out.Size = max(int(g.ObservedViewMax), len(s.InstanceNames)-len(g.LeftOut))
	out.Majority = out.Size/2 + 1
	for _, m := range g.Members {
		if m.State == string(core.MemberOnline) {
			out.Online++
		}
		left := slices.IndexFunc(g.LeftOut, func(l v1alpha1.LeftOutMember) bool { return l.Instance == m.Instance })
		out.Members = append(out.Members, Member{Name: m.Instance, State: m.State, Role: m.Role, Reachable: m.Reachable,
			Fenced: slices.Contains(s.FencedInstances, m.Instance), Diverged: slices.Contains(s.DivergedInstances,
				m.Instance), LeftOut: left >= 0, Excluded: left >= 0 && !g.LeftOut[left].Admitted})
	}
	return out
}
