package whatif

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/core/topology"
)

const (
	// suspicion is when a group suspects a member that says nothing; with
	// spec.replication.groupReplication.memberExpelTimeoutSeconds it goes on without it.
	suspicion = 5 * time.Second
	// rejoin is how long a member takes that was away for a moment.
	rejoin = 3 * time.Second
)

// GroupAnswer is what becomes of a group.
type GroupAnswer struct {
	// Online members in the end, of Size, of which Majority are a majority.
	Online   []string `json:"online"`
	Size     int      `json:"size"`
	Majority int      `json:"majority"`
	// Quorum: the group goes on by itself.
	Quorum bool `json:"quorum"`
	// Recovery is what the operator would do on a human's word, when it does not.
	Recovery *Recovery `json:"recovery,omitempty"`
}

// groupModel is a group in which time is data. Members of the view that are suspected
// are not reached by the others.
type groupModel struct {
	*model
	expel   time.Duration
	view    []string
	suspect map[string]bool
	primary string
	views   int
	// again: the group was rebooted, and who was suspected before is so no more.
	anew bool
}

func playGroup(o core.Observation, lose []string, how How) (Answer, error) {
	m, err := newGroupModel(o)
	if err != nil {
		return Answer{}, err
	}
	if lose, err = m.withNeighbours(lose, how); err != nil {
		return Answer{}, err
	}
	was := m.primary
	if how == PodDeleted && len(lose) > 1 && slices.Contains(lose, was) {
		m.assume("all Pods are deleted at the same moment; kubectl deletes one after the other, and who is deleted a " +
			"moment later may be made primary in between: writes then stand for some seconds more")
	}
	m.lookOnce()
	for _, name := range lose {
		m.lose(name, how)
	}
	a := Answer{Primary: was, Lost: lose, How: how}
	m.play(&a)
	a.Group = m.answer()
	m.told(&a)
	return a, nil
}

// newGroupModel believes the view that the operator's decision believes; of a group
// without one, nothing can be told.
func newGroupModel(o core.Observation) (*groupModel, error) {
	plan := topology.Decide(o)
	s := plan.Status
	switch {
	case o.Cluster.Deleting:
		return nil, fmt.Errorf("cluster %s is being deleted: there is nothing to simulate", o.Cluster.Name)
	case !s.Group.Bootstrapped:
		return nil, fmt.Errorf("the group of cluster %s is not made yet: there is nothing to lose", o.Cluster.Name)
	case !s.Group.HasQuorum || s.CurrentPrimary == "":
		return nil, fmt.Errorf("no majority of the group of cluster %s is seen as it is, so that what a loss would "+
			"change cannot be told: %s", o.Cluster.Name, s.Reason)
	}
	o.Instances = slices.Clone(o.Instances)
	m := &groupModel{model: &model{o: o, begun: o.Now, changed: o.Now, managers: map[string]*manager{},
		before: &core.Promotion{Instance: s.CurrentPrimary, Epoch: s.Epoch}},
		expel: o.Cluster.Group.ExpelTimeout, suspect: map[string]bool{}, primary: s.CurrentPrimary}
	for i := range o.Instances {
		in := &o.Instances[i]
		r, known := in.Report.Get()
		m.managers[in.Name] = &manager{name: in.Name, report: own(r), reachable: known, dead: !known}
		if !known {
			m.assume("%s does not answer now, and is treated as gone", in.Name)
		}
	}
	for _, member := range s.Group.Members {
		if member.State == core.MemberOnline {
			m.view = append(m.view, member.Instance)
			m.suspect[member.Instance] = m.managers[member.Instance].dead
		} else if m.managers[member.Instance].reachable {
			m.assume("%s is %s now, and is not counted as a member", member.Instance, member.State)
		}
	}
	m.show()
	return m, nil
}

// lookOnce lets the operator decide once before anything is lost, so that what it knows by now, it
// knows then.
func (m *groupModel) lookOnce() {
	m.hearAll()
	m.publish(topology.Decide(m.o))
}

func (m *groupModel) lose(name string, how How) {
	t := m.managers[name]
	switch {
	case t.dead && how != NodeLost:
		m.assume("%s already does not answer: nothing more can be learned from its loss", name)
	case how == NodeLost:
		t.dead = true
		m.at(core.CutAfter, "the operator gives up the manager of "+name+" after "+core.CutAfter.String()+" of silence",
			func() { t.reachable = false })
		m.silence(name)
	case how == MysqldDown:
		m.crash(t)
	case how == PodDeleted:
		m.terminate(t)
	}
}

// silence has the others suspect a member that says nothing. They go on without it if they are a
// majority.
func (m *groupModel) silence(name string) {
	if !slices.Contains(m.view, name) {
		return
	}
	m.at(suspicion, fmt.Sprintf("the group hears nothing from %s for %s", name, suspicion), func() {
		m.suspect[name] = !m.anew
		m.show()
	})
	m.when(suspicion+m.expel+step, "the group goes on without "+name+
		" after spec.replication.groupReplication.memberExpelTimeoutSeconds", func() bool {
		return !m.anew && m.hasMajority()
	}, func() { m.leave(name) })
}

// hasMajority reports whether more than half of the view reach each other.
func (m *groupModel) hasMajority() bool { return 2*len(m.reaching()) > len(m.view) }

func (m *groupModel) reaching() []string {
	return slices.DeleteFunc(slices.Clone(m.view), func(name string) bool { return m.suspect[name] })
}

// leave takes the member out of the view. If it was primary, the group elects another.
func (m *groupModel) leave(name string) {
	m.view = slices.DeleteFunc(m.view, func(n string) bool { return n == name })
	delete(m.suspect, name)
	if m.primary == name {
		m.primary = m.elect()
	}
	m.show()
}

// elect chooses as a group does whose members have equal weights: of those with the
// lowest version the one with the lowest UUID.
func (m *groupModel) elect() string {
	candidates := m.reaching()
	slices.SortFunc(candidates, func(a, b string) int {
		x, y := m.managers[a].report, m.managers[b].report
		if x.Version != y.Version {
			m.assume("members run different versions, and the group elects one of the lowest")
			return core.CompareVersions(x.Version, y.Version)
		}
		return strings.Compare(uuidOf(x), uuidOf(y))
	})
	if len(candidates) == 0 {
		return ""
	}
	m.assume("all members have the same weight, so that the group elects the one with the lowest server_uuid; one " +
		"that is just then hindered is passed over")
	return candidates[0]
}

func uuidOf(r core.Report) string {
	if r.Server == nil {
		return ""
	}
	return r.Server.UUID
}

// show gives each member that lives its view of the group, and all others none.
func (m *groupModel) show() {
	m.views++
	var members []core.ViewMember
	for _, name := range m.view {
		r := m.managers[name].report
		v := core.ViewMember{Host: name, UUID: uuidOf(r), State: core.MemberOnline,
			Role: core.MemberSecondary, Version: r.Version}
		if m.suspect[name] {
			v.State = core.MemberUnreachable
		}
		if name == m.primary {
			v.Role = core.MemberPrimary
		}
		members = append(members, v)
	}
	for name, t := range m.managers {
		if t.report.Server == nil {
			continue
		}
		v := &core.GroupView{State: core.MemberOffline, Received: t.report.Server.Holds()}
		if i := slices.Index(m.view, name); i >= 0 && !m.suspect[name] {
			v.State, v.Role, v.ViewID, v.Members = core.MemberOnline, members[i].Role, "play:"+
				strconv.Itoa(m.views), members
		}
		t.report = own(t.report)
		t.report.Server.Group, t.report.WritableEpoch = v, 0
	}
}

// crash ends the member's mysqld. Its manager knows at once and starts mysqld again, which is in
// no group then.
func (m *groupModel) crash(t *manager) {
	server := t.report.Server
	if server == nil {
		return
	}
	t.report.State, t.report.Server, t.report.Message = core.Stopped, nil, "mysqld ended by signal killed"
	m.silence(t.name)
	m.at(mysqldStart, "mysqld of "+t.name+" starts", func() {
		m.assume("mysqld needs %s to start; a long recovery needs longer", mysqldStart)
		m.back(t, server, suspicion+m.expel+rejoin)
	})
}

// back lets mysqld run again, with the data that server has. It joins the group after a while, if
// there is one with a majority. A nil server has nothing to run with.
func (m *groupModel) back(t *manager, server *core.Server, after time.Duration) {
	if server == nil {
		return
	}
	t.report.State, t.report.Message, t.report.Server = core.Running, "", own(core.Report{Server: server}).Server
	t.report.Server.Group = &core.GroupView{State: core.MemberOffline, Received: server.Holds()}
	m.at(after, t.name+" joins the group again, if there is one", func() {
		if m.hasMajority() && !slices.Contains(m.view, t.name) {
			m.view = append(m.view, t.name)
			m.show()
		}
	})
}

// terminate asks the member's Pod to go. A primary waits to be relieved, unless it is alone.
// Everybody leaves the group before its mysqld ends, and comes back with a new Pod.
func (m *groupModel) terminate(t *manager) {
	in := m.o.Instance(t.name)
	pod, known := in.Pod.Get()
	if !known || !pod.Exists {
		return
	}
	pod.Terminating, t.report.Terminating = true, true
	in.Pod = core.Known(pod, m.o.Now, m.o.Now)
	leave := func() {
		m.leave(t.name)
		m.at(mysqldStart, "mysqld of "+t.name+" stops", func() { m.endPod(t) })
	}
	if t.name != m.primary || len(m.view) == 1 {
		m.at(step, t.name+" leaves the group", leave)
		return
	}
	m.when(agent.ReliefWait, t.name+" waits "+agent.ReliefWait.String()+" to be relieved before it leaves the group",
		func() bool { return m.primary == t.name }, leave)
	t.rejoin = leave // at once when it is relieved
}

func (m *groupModel) endPod(t *manager) {
	in := m.o.Instance(t.name)
	pod, known := in.Pod.Get()
	if !known {
		return
	}
	server := t.report.Server
	t.report.State, t.report.Server, t.reachable = core.Stopped, nil, false
	in.Pod = core.Known(core.Pod{}, m.o.Now, m.o.Now)
	t.pod = func(string) {
		m.at(podStart, "the new Pod of "+t.name+" starts", func() {
			m.assume("a new Pod needs %s to start, on the same node", podStart)
			in.Pod = core.Known(core.Pod{Exists: true, UID: pod.UID + "-next", Node: pod.Node, Ready: true,
				Current: true, Role: pod.Role, Routable: pod.Routable}, m.o.Now, m.o.Now)
			t.reachable, t.report.Terminating, t.report.PodUID = true, false, pod.UID+"-next"
			m.back(t, server, rejoin) // its group knows that it has left
		})
	}
}

// play goes on until another primary is mirrored or nothing happens any more.
func (m *groupModel) play(a *Answer) {
	for range passes {
		m.hearAll()
		plan := topology.Decide(m.o)
		changed := m.publish(plan)
		if s := plan.Status; s.Group.HasQuorum && s.CurrentPrimary != m.before.Instance {
			m.mirrored(a, s)
			return
		}
		for _, e := range plan.Effects {
			changed = m.carryOut(e) || changed
		}
		switch {
		case changed:
			m.changed, m.settled = m.o.Now, len(m.waits)
			m.o.Now = m.o.Now.Add(step)
		case !m.wait(plan.Recheck):
			m.stays(a)
			return
		}
	}
	a.Outcome, a.Because = Undecided, m.o.Cluster.Status.Reason
}

// carryOut is what the group does about an order; the rest is as without a group.
func (m *groupModel) carryOut(e core.Effect) bool {
	if r, is := e.(core.RebootGroup); is {
		return m.reboot(r)
	}
	ask, is := e.(core.SetGroupPrimary)
	if !is {
		return m.model.carryOut(e)
	}
	if m.primary == ask.Primary || !m.hasMajority() || !slices.Contains(m.reaching(), ask.Primary) {
		return false
	}
	former := m.managers[m.primary]
	m.primary = ask.Primary
	m.show()
	run(former.rejoin)
	former.rejoin = nil
	return true
}

// reboot makes the group from one member. It does so only after a total outage, when the operator
// decided it by itself, and reports whether it did.
func (m *groupModel) reboot(e core.RebootGroup) bool {
	op, t := m.o.Cluster.Status.Operation, m.managers[e.Instance]
	if op == nil || op.Reason != core.ReasonTotalOutage || t.dead || t.report.Server == nil {
		return false
	}
	m.anew, m.view, m.suspect, m.primary = true, []string{e.Instance}, map[string]bool{}, e.Instance
	m.show()
	return true
}

func (m *groupModel) mirrored(a *Answer, s core.Status) {
	m.changed, m.settled = m.o.Now, len(m.waits)
	a.Outcome, a.Promoted, a.Epoch = Promoted, s.CurrentPrimary, s.Epoch
	if server := m.managers[s.CurrentPrimary].report.Server; server != nil {
		a.ToApply = server.Holds().Subtract(server.Executed).Count()
	}
	a.Losses = &Losses{Nothing: true, Because: "the group acknowledges a write when a majority of it has received " +
		"it, and a majority goes on"}
	if m.anew {
		a.Losses.Because =
			"all instances are known, and the one that reboots the group holds all that any of them holds"
	}
}

// stays fills in the answer when nobody is promoted: the primary goes on, or nobody does until a
// human decides.
func (m *groupModel) stays(a *Answer) {
	s := &m.o.Cluster.Status
	a.Outcome, a.Diagnosis, a.Because = Blocked, s.Diagnosis, s.Reason
	if s.Blocked != nil {
		a.Refusal = s.Blocked.Reason
	}
	if s.Group.HasQuorum && s.CurrentPrimary == m.before.Instance {
		a.Outcome, a.Promoted, a.Epoch, a.Refusal = Continues, s.CurrentPrimary, s.Epoch, ""
	}
}

func (m *groupModel) answer() *GroupAnswer {
	var names []string
	for i := range m.o.Instances {
		names = append(names, m.o.Instances[i].Name)
	}
	g := m.o.Cluster.Status.Group
	size := g.Size(names)
	out := &GroupAnswer{Size: size, Majority: core.Majority(size), Online: []string{}, Quorum: g.HasQuorum}
	for _, name := range m.reaching() {
		if !m.managers[name].dead {
			out.Online = append(out.Online, name)
		}
	}
	slices.Sort(out.Online)
	if !out.Quorum {
		r := RecoverAtALoss(m.o)
		out.Recovery = &r
	}
	return out
}
