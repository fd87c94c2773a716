package group

import (
	"cmp"
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

// mirror takes over what the group has decided.
func (d *decision) mirror() {
	if !d.g.Bootstrapped {
		d.noteBootstrap()
	}
	d.mendStatus()
	d.listMembers()
	had := d.g.HasQuorum
	d.g.HasQuorum = d.seen.agreed
	if !d.seen.agreed {
		return
	}
	if phase := d.Cluster.Status.Phase; !had && (phase == core.PhaseBlocked || phase == core.PhaseFailover) {
		d.Tell(core.ReasonQuorumRestored, fmt.Sprintf("the group has its quorum: %d members are online", d.seen.online))
	}
	d.g.OutageTried = ""
	if !d.isPast() {
		d.takeBack()
	}
	d.g.ViewID = d.seen.viewID
	d.g.ViewMax = max(d.g.ViewMax, len(d.seen.members))
	d.g.OnlineMax = max(d.g.OnlineMax, d.seen.online)
	if d.seen.primary != "" {
		d.g.Primary = d.seen.primary
		d.follow(d.seen.primary)
		d.keepTarget()
	}
}

// keepTarget has the primary be the wished one again where somebody withdrew the wish. Nothing is restarted
// on purpose while they differ.
func (d *decision) keepTarget() {
	if d.g.Bootstrapped && d.Status.TargetPrimary == "" && d.Status.Operation == nil {
		d.Status.TargetPrimary, d.Status.TargetPrimaryAt = d.seen.primary, d.Now
	}
}

// noteBootstrap notes that the group is made, once the one instance that may make it says that it
// has. From here on nobody ever makes it again.
func (d *decision) noteBootstrap() {
	if d.seen.agreed { // the group lives, and the Cluster's status was lost
		d.adopt(d.seen.primary)
		return
	}
	in := d.Instance(d.g.Bootstrapper)
	if in == nil {
		return
	}
	v, known := viewOf(in)
	if !known || v.State != core.MemberOnline || v.Role != core.MemberPrimary || !v.HasQuorum() {
		return
	}
	// The electorate is this one member, for nobody else may have joined.
	d.seen = agreedOn(d.Observation, v)
	d.adopt(in.Name)
}

// adopt takes over a group that is made. Where the status was lost, it does not tell whom the group went on
// without.
func (d *decision) adopt(primary string) {
	d.g.Bootstrapped = true
	text := primary + " has made the group " + d.g.Name
	last, isLost := d.LastEpoch(), d.isPast()
	if isLost {
		text += "; the Cluster's status was lost: " + d.leaveUnknown()
		d.Status.Epoch = last
	}
	for i := range d.Instances { // orders of an earlier epoch would be refused
		if r, known := d.Instances[i].Report.Get(); known {
			d.Status.Epoch = max(d.Status.Epoch, r.SeenEpoch)
		}
	}
	if isLost {
		d.g.NoteForgotten(d.Status.Epoch)
	}
	if d.Status.EstablishedAt.IsZero() {
		d.Status.EstablishedAt = d.Now
	}
	d.Tell(core.ReasonGroupBootstrapped, text)
	d.Again = true
}

// follow mirrors the elected primary. The target moves with it: an old wish must not
// move the primary back when its holder returns. A wish from before there was a primary stays, so that it is
// carried out or refused by name. An epoch is begun only by mendStatus where some were lost.
func (d *decision) follow(primary string) {
	if d.Status.CurrentPrimary == primary {
		return
	}
	former := d.Status.CurrentPrimary
	op := d.Status.Operation
	d.Status.CurrentPrimary, d.Status.CurrentPrimaryAt, d.Status.Return = primary, d.Now, nil
	if !d.isPast() {
		d.Status.Epoch++
	}
	switch {
	case former == "":
		d.Tell(core.ReasonPrimaryEstablished, primary+" is the primary")
	case op != nil && op.Kind == core.OperationSwitchover && op.To == primary:
		d.Tell(core.ReasonPrimaryChanged, fmt.Sprintf("Switchover: %s is the primary now, after %s (%s), %.3fs",
			primary, former, op.Reason, d.Now.Sub(op.StartedAt).Seconds()))
	default:
		d.Status.LastFailover = d.Now
		d.Tell(core.ReasonFailoverObserved, fmt.Sprintf("the group has elected %s primary, after %s", primary, former))
	}
	if op != nil {
		d.Status.Operation = nil
	}
	if d.Status.TargetPrimary != primary && former != "" {
		d.Status.TargetPrimary, d.Status.TargetPrimaryAt = primary, d.Now
	}
	d.Again = true
}

// listMembers lists every instance as the group sees it, and where there is no
// verdict, or it is not in the view, as it sees itself.
func (d *decision) listMembers() {
	before := d.g.Members
	d.g.Members = nil
	for i := range d.Instances {
		in := &d.Instances[i]
		m := core.GroupMember{Instance: in.Name, State: core.MemberUnknown, Reachable: in.Report.Known(),
			Leaving: d.isGoing(in.Name)}
		if v, known := viewOf(in); known {
			m.State, m.Role = v.State, v.Role
		}
		agreed, listed := d.seen.members[in.Name]
		switch {
		case d.seen.agreed && listed:
			m.State, m.Role = agreed.State, agreed.Role
		case d.seen.agreed && m.State == core.MemberOnline: // alone, or in a view of before
			m.State, m.Role = core.MemberUnreachable, ""
		}
		m.Address = addressOf(in, before)
		d.g.Members = append(d.g.Members, m)
	}
}

// addressOf is the address of an instance's Pod, or, while that has none, its last.
func addressOf(in *core.Instance, before []core.GroupMember) string {
	if pod, known := in.Pod.Get(); known && pod.Address != "" {
		return pod.Address
	}
	for _, m := range before {
		if m.Instance == in.Name {
			return m.Address
		}
	}
	return ""
}

// situation tells the members' states in one line.
func (d *decision) situation() string {
	text := ""
	for _, m := range d.g.Members {
		if text != "" {
			text += ", "
		}
		text += m.Instance + " " + string(cmp.Or(m.State, core.MemberUnknown))
	}
	return text
}

// standing is the situation, and who has no say in it.
func (d *decision) standing() string {
	if len(d.g.LeftOut) == 0 {
		return d.situation()
	}
	return d.situation() + "; " + d.without()
}

// judge keeps the list of those who hold what the group lacks: by their own word, while there
// is a group, or because it went on without them from less than they hold.
func (d *decision) judge() {
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Report.Get()
		is := slices.Contains(d.Status.Diverged, in.Name)
		beyond := d.beyond(in, is)
		switch {
		case !known || r.Server == nil:
		case is && beyond.IsEmpty() && d.isHealed(in, r):
			d.Status.Diverged = draft.Without(d.Status.Diverged, in.Name)
		case is:
		case !beyond.IsEmpty():
			d.diverge(in, d.saysBeyond(in.Name, beyond))
		case d.seen.agreed && !r.Errant.IsEmpty():
			d.diverge(in, fmt.Sprintf("holds transactions that the group lacks (%s)", r.Errant.Abbreviate(4)))
		}
	}
	d.Status.Diverged = slices.DeleteFunc(d.Status.Diverged, func(name string) bool { return d.Instance(name) == nil })
	slices.Sort(d.Status.Diverged)
}

// saysBeyond tells of what an instance holds beyond what those surely held who went on without it.
func (d *decision) saysBeyond(name string, beyond gtid.Set) string {
	if l, _ := d.g.LeftOutOf(name); l.Held.IsEmpty() {
		return fmt.Sprintf("was out of the group, and it is not known what the group held then: its GTIDs (%s) may "+
			"name other transactions in the group", beyond.Abbreviate(4))
	}
	return fmt.Sprintf("had received transactions that the others lacked when it was excluded (%s); their GTIDs may "+
		"now name other transactions in the group", beyond.Abbreviate(4))
}

// isHealed reports whether an instance that was diverged, and says r of a server that answers, holds
// nothing that the group lacks. That it names nothing is no proof: it may have found nobody to compare
// itself with.
func (d *decision) isHealed(in *core.Instance, r core.Report) bool {
	primary := d.Instance(d.seen.primary)
	if !r.Errant.IsEmpty() || primary == nil {
		return false
	}
	p, known := primary.Report.Get()
	return d.seen.isOnline(in.Name) || known && p.Server != nil && p.Server.Holds().Contains(r.Server.Holds())
}

func (d *decision) diverge(in *core.Instance, why string) {
	d.Status.Diverged = append(d.Status.Diverged, in.Name)
	d.Warn(core.ReasonDiverged, in.Name+" "+why+": it is kept out of the group, and its data is kept; kubectl cnmsql "+
		"reinit recreates it")
}
