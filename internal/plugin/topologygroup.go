package plugin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/observation"
)

// group is a MySQL group with one primary.
type group struct{}

func (group) writable(f *Facts) (Writable, string) {
	writers, silent := f.writers()
	s := &f.Cluster.Status
	switch primary := s.CurrentPrimary; {
	case len(writers) > 1:
		return WritableUnknown, strings.Join(writers, " and ") +
			" BOTH SAY that they are the primary of a group with a quorum; if that lasts, the group is split in two"
	case len(writers) == 1 && f.live(writers[0]).LacksSpace():
		return WritableWaiting, writers[0] + fullText
	case len(writers) == 1:
		return f.routed(writers[0], writers[0]+" is the primary of the group and accepts writes")
	case primary == "":
		return WritableNo, "the group has no primary yet"
	case f.live(primary) == nil:
		return writableByDiagnosis(f, primary)
	case hangs(f.live(primary)):
		return WritableUnknown, primary + hangsText
	case lacksMajority(f.live(primary)):
		return WritableWaiting, primary +
			" is the primary, but has lost the majority of the group: each commit waits until the majority is back"
	case len(silent) > 0:
		return WritableUnknown, fmt.Sprintf("%s says that it is not the primary of a group with a quorum, and %s did "+
			"not say", primary, strings.Join(silent, ", "))
	default:
		return WritableNo, fmt.Sprintf("no instance says that it is the primary of a group with a quorum; %s is %s",
			primary, describeState(f.live(primary)))
	}
}

// writers say themselves that they are primaries whose commits succeed; silent are
// those who were asked and did not tell: nobody answers, or mysqld hangs.
func (f *Facts) writers() (writers, silent []string) {
	for _, name := range instanceNames(&f.Cluster.Status) {
		r := f.live(name)
		v := viewOrUnknown(r)
		switch {
		case r == nil && f.Live[name].Problem != "", hangs(r):
			silent = append(silent, name)
		case r != nil && r.TakesWrites() && v.State == core.MemberOnline &&
			v.Role == core.MemberPrimary && v.HasQuorum():
			writers = append(writers, name)
		}
	}
	return writers, silent
}

// viewOrUnknown is an instance's own word about its group: UNKNOWN where it tells nothing of one, as when its
// mysqld hangs.
func viewOrUnknown(r *core.Report) core.GroupView {
	if r != nil {
		if v, tells := r.TellsView(); tells {
			return *v
		}
	}
	return core.GroupView{State: core.MemberUnknown}
}

func lacksMajority(r *core.Report) bool {
	v := viewOrUnknown(r)
	return v.IsSurvivor()
}

func (group) place(in *Instance, f *Facts, r *core.Report) {
	v := viewOrUnknown(r)
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
		name := core.InstanceIn(m.Host)
		if m.Role == core.MemberPrimary && m.State == core.MemberOnline && name != f.Cluster.Status.CurrentPrimary {
			in.note("says that the primary is %s, and the operator says %s", name,
				cmp.Or(f.Cluster.Status.CurrentPrimary, "nobody"))
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

func (group) takesPart(_ *v1alpha1.Cluster, s *core.Server) bool {
	return s.View().State == core.MemberOnline
}

func (group) fencing() fenceWords {
	return fenceWords{
		pending:  "fenced by a human: it leaves the group; its mysqld runs on, read-only",
		standing: " is fenced",
		primary:  "Fencing it makes it leave the group: its sessions end, and the group elects another primary.",
		on:       "it leaves the group, its mysqld runs on read-only, its Pod stays and shows 0/1 ready",
		off:      "it joins the group again",
		refusal:  core.RefusalFenceQuorum,
	}
}

func (group) opening() string {
	return " becomes writable, and the operator points the -rw Service at it"
}

func (group) promise(p page, r Report) { p.line("Group", "%s", groupText(r.Group)) }

func (group) columns() []string {
	return []string{"INSTANCE", "ROLE", "STATE", "MEMBER", "READY", "LACKS", "ERRANT",
		"VERSION", "NODE", "RESTARTS"}
}

func (group) reference(r Report) string { return r.Primary }

func (group) overridable(c *v1alpha1.Cluster, to string) error {
	return fmt.Errorf("cluster %s is a group, which elects its primary itself: nothing was done. To make %s "+
		"primary: kubectl cnmsql promote %s %s -n %s; when the group has lost its quorum: kubectl cnmsql group "+
		"recover %s -n %s",
		c.Name, to, c.Name, to, c.Namespace, c.Name, c.Namespace)
}

// groupOf puts the group in words, as the operator saw it last; nil where there is none.
func groupOf(c *v1alpha1.Cluster) *Group {
	if !declared.Topology(&c.Spec).RunsGroup() {
		return nil
	}
	s := &c.Status
	out := &Group{Primary: s.CurrentPrimary, Wanted: int(c.Spec.Instances),
		Consistency: declared.Group(&c.Spec).Consistency}
	g := s.GroupReplication
	if g == nil {
		return out
	}
	out.Name, out.Bootstrapped, out.HasQuorum, out.ViewID = g.GroupName, g.Bootstrapped, g.HasQuorum, g.ViewID
	out.Primary = cmp.Or(g.PrimaryMember, out.Primary)
	out.Size = observation.GroupSize(s)
	out.Majority = core.Majority(out.Size)
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
