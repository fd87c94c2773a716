package operator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/layout"
)

// group is what the servers of a story do of themselves as members of a group: they find out who is gone, and elect
// a primary. There is one view: whoever makes a group, or goes on with one, while another is online breaks a rule.
type group struct {
	// view are the members, and primary the one that they elected.
	view    []member
	primary string
	// made is how often the group was made or rebooted, and changes how often its view has changed since.
	made, changes int
	// acked is what clients were told to be committed.
	acked gtid.Set
	// had tells whether the group had its majority when the operator looked last, and isHurt, whether the story has
	// done something since that may cost it.
	had, isHurt bool
}

// member is an instance in its Pod: mysqld of another Pod has not joined.
type member struct {
	name string
	pod  types.UID
}

func (g *group) copy() *group {
	out := *g
	out.view = slices.Clone(g.view)
	return &out
}

// isUp reports whether the member's mysqld runs, and is in the group.
func (m member) isUp(s *stage) bool { return s.pods[m.name] != nil && s.pods[m.name].UID == m.pod }

// up are the members that reach each other, and hasQuorum whether these are most of the view.
func (g *group) up(s *stage) []member {
	return slices.DeleteFunc(slices.Clone(g.view), func(m member) bool { return !m.isUp(s) })
}

func (g *group) hasQuorum(s *stage) bool { return 2*len(g.up(s)) > len(g.view) }

// has reports whether the instance is a member, in the Pod that it has now.
func (g *group) has(s *stage, name string) bool {
	return slices.ContainsFunc(g.view, func(m member) bool { return m.name == name && m.isUp(s) })
}

// become gives the group another view. Where the primary is not in it, another one is elected.
func (g *group) become(s *stage, view []member) {
	g.view, s.moved = view, true
	g.changes++
	if len(view) > 0 && !slices.ContainsFunc(view, func(m member) bool { return m.name == g.primary }) {
		g.primary = slices.MinFunc(view, func(a, b member) int { return strings.Compare(a.name, b.name) }).name
	}
}

// settle has the members expel those that are gone, if they are a majority. What the operator did must not have cost
// them that.
func (g *group) settle(s *stage) {
	s.Helper()
	left := g.up(s)
	if had := g.had && !g.isHurt; had && !g.hasQuorum(s) && s.isWanted() {
		s.Errorf("the group of %v has lost its majority", g.view)
	}
	if g.hasQuorum(s) && len(left) < len(g.view) {
		g.become(s, left)
	}
	g.had, g.isHurt = g.hasQuorum(s), false
}

// check wants whoever is removed, or gets new data, to be out of the group before.
func (g *group) check(s *stage) {
	s.Helper()
	for _, m := range g.up(s) {
		claim := s.claimOf(m.name)
		isGoing := claim == nil || claim.DeletionTimestamp != nil || !slices.Contains(s.c.Status.InstanceNames, m.name)
		if isGoing && s.c.DeletionTimestamp == nil {
			s.Errorf("%s is removed, or its data are, and it is in the group", m.name)
		}
	}
}

// isWanted reports whether neither the Cluster nor its namespace is deleted.
func (s *stage) isWanted() bool {
	s.Helper()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	return s.c != nil && s.c.DeletionTimestamp == nil && s.get(space) && space.DeletionTimestamp == nil
}

// saysMade reports whether the status says that a group was made.
func (s *stage) saysMade() bool {
	return s.c.Status.GroupReplication != nil && s.c.Status.GroupReplication.Bootstrapped
}

// leave takes a member out of the group, by its own word. One that had its majority keeps it.
func (g *group) leave(s *stage, name string) {
	s.Helper()
	rest := slices.DeleteFunc(slices.Clone(g.view), func(m member) bool { return m.name == name })
	if g.hasQuorum(s) {
		g.become(s, rest)
		return
	}
	for i := range g.view {
		if g.view[i].name == name {
			g.view[i].pod, s.moved = "", true
		}
	}
}

// goBy has the manager of a member do what follows from the Cluster's status.
func (g *group) goBy(s *stage, r *core.Report, status *core.Status) {
	s.Helper()
	is, of := g.has(s, r.Instance), status.Group
	isToMake := of.Bootstrapper == r.Instance && !of.Bootstrapped
	primary := s.managerOf(status.CurrentPrimary)
	switch {
	case r.Data == core.DataEmpty && isToMake && status.EstablishedAt.IsZero():
		fill(r, gtid.MustParse(of.Name+":1-10"), uuid.NewString())
		g.acked = r.Server.Executed
	case r.Data == core.DataEmpty && (of.Bootstrapper != "" || of.Bootstrapped):
		r.State, r.Data = core.AwaitingClone, core.DataScratch
	case r.Data != core.DataPopulated:
	case r.Terminating && is, r.NoReceivingBelow > r.ViewEpoch && is:
		g.leave(s, r.Instance)
	case r.Terminating, is, r.NoReceivingBelow > r.ViewEpoch:
	case isToMake:
		g.make(s, r, false)
	case !of.Bootstrapped, of.Excludes(r.Instance), r.ViewEpoch > status.Epoch, !g.hasQuorum(s):
	case primary != nil && g.has(s, primary.Instance) && primary.Server.Holds().Contains(r.Server.Holds()):
		r.Server.Executed = r.Server.Executed.Union(primary.Server.Executed)
		g.become(s, append(slices.Clone(g.view), member{r.Instance, types.UID(r.PodUID)}))
	}
}

// make makes the group, or reboots it.
func (g *group) make(s *stage, r *core.Report, again bool) {
	s.Helper()
	if up := g.up(s); len(up) > 0 {
		s.Errorf("%s makes a group, and %v are in one", r.Instance, up)
	}
	if g.made++; g.made > 1 && !again {
		s.Errorf("the group is made a second time, by %s", r.Instance)
	}
	if lacks := g.acked.Subtract(r.Server.Holds()); !lacks.IsEmpty() {
		s.Errorf("%s makes the group, and lacks %s, which clients were told to be committed", r.Instance, lacks)
	}
	g.changes = 0
	g.become(s, []member{{r.Instance, types.UID(r.PodUID)}})
}

// show has a server say how it sees the group.
func (g *group) show(s *stage, r *core.Report) {
	if r.Server == nil || s.c.Status.GroupReplication == nil {
		return
	}
	r.Server.Group, r.Server.SuperReadOnly = &core.GroupView{State: core.MemberOffline}, true
	if !g.has(s, r.Instance) {
		return
	}
	v := &core.GroupView{State: core.MemberOnline, Role: core.MemberSecondary,
		ViewID: fmt.Sprintf("%d:%d", g.made, g.changes)}
	for _, m := range g.view {
		says := core.ViewMember{Host: layout.InstanceHost(m.name, "ns"), State: core.MemberUnreachable,
			Role: core.MemberSecondary, Version: r.Version}
		if other := s.managerOf(m.name); other != nil && m.isUp(s) {
			says.State, says.UUID = core.MemberOnline, other.Server.UUID
		}
		if m.name == g.primary {
			says.Role = core.MemberPrimary
		}
		v.Members = append(v.Members, says)
	}
	if r.Instance == g.primary {
		v.Role, r.Server.SuperReadOnly = core.MemberPrimary, !g.hasQuorum(s)
	}
	r.Server.Group = v
}

// write has the primary commit one transaction more, which all members receive but those that lack it.
func (g *group) write(s *stage, lacks ...string) {
	s.Helper()
	name, _, _ := strings.Cut(g.acked.String(), ":")
	g.acked = gtid.MustParse(fmt.Sprintf("%s:1-%d", name, g.acked.Count()+1))
	for _, m := range g.up(s) {
		if !slices.Contains(lacks, m.name) {
			r := s.managerOf(m.name)
			r.Server.Executed = r.Server.Executed.Union(g.acked)
		}
	}
}

// obey has a member carry out an order that only members are given. It tells whether it was one.
func (g *group) obey(s *stage, e core.Effect) bool {
	s.Helper()
	switch e := e.(type) {
	case core.SetGroupPrimary:
		s.order(e.Instance, e.Epoch, func(r *core.Report) {
			if g.has(s, e.Instance) && g.has(s, e.Primary) && g.hasQuorum(s) {
				g.primary, s.moved = e.Primary, true
			}
		})
	case core.ForceMembers:
		s.order(e.Instance, e.Epoch, func(r *core.Report) { g.force(s, r, e) })
	case core.RebootGroup:
		s.order(e.Instance, e.Epoch, func(r *core.Report) {
			if r.Server != nil && !g.has(s, r.Instance) && e.Epoch == s.c.Status.PrimaryEpoch {
				g.make(s, r, true)
			}
		})
	default:
		return false
	}
	return true
}

// force has a survivor go on with those that are named, out of the view that it was seen in.
func (g *group) force(s *stage, r *core.Report, e core.ForceMembers) {
	s.Helper()
	names := strings.Split(e.Members, ",")
	if !g.has(s, r.Instance) || g.hasQuorum(s) || r.Server.View().ViewID != e.View {
		return
	}
	for _, m := range g.up(s) {
		if !slices.Contains(names, m.name) {
			s.Errorf("%s goes on with %v, and %s is in the group", r.Instance, names, m.name)
		}
	}
	if lacks := g.acked.Subtract(r.Server.Holds()); !lacks.IsEmpty() {
		s.Errorf("%s goes on with the group, and lacks %s, which clients were told to be committed", r.Instance, lacks)
	}
	g.become(s, slices.DeleteFunc(slices.Clone(g.view), func(m member) bool { return !slices.Contains(names, m.name) }))
}

// expectWhole wants all instances to be members, of whom none lacks anything.
func (g *group) expectWhole(s *stage, primary string) {
	s.Helper()
	of := s.c.Status.GroupReplication
	if of == nil {
		return
	}
	if g.primary != primary || len(g.up(s)) != len(s.pods) || len(g.view) != len(s.pods) || !of.HasQuorum ||
		len(of.LeftOut)+len(of.NewInstances)+len(s.c.Status.DivergedInstances) > 0 {
		s.Errorf("the group of %v with the primary %s is not whole: %+v", g.view, g.primary, of)
	}
	for name := range s.pods {
		r := s.managerOf(name)
		if r == nil || r.Server == nil || !r.Server.Holds().Equal(g.acked) {
			s.Errorf("%s does not hold all that was committed (%s): %s", name, g.acked, textOf(r))
		}
	}
}
