package group

import (
	"fmt"

	"cnmsql.co/internal/core"
)

// No group is rebooted, and no quorum forced, beside a group that may go on. The group itself counts those who
// recover in its majority. Whoever of them has received all becomes ONLINE, whoever else is, and the group elects a
// primary then: one in which nobody is online may take writes a moment later.

// lookBeside looks for whoever is in a group, excluded or not.
func (d *decision) lookBeside() beside {
	b := beside{foreign: d.foreignGroup()}
	for i := range d.Instances {
		in := &d.Instances[i]
		v, heard := viewOf(in)
		switch {
		case !heard:
			continue
		case v.IsMember():
			b.members = append(b.members, in)
		case in.Report.Is(isJoining):
			b.joining = append(b.joining, in)
		}
		if v.State != core.MemberRecovering || !v.HasQuorum() {
			continue
		}
		b.recovering = append(b.recovering, in)
		if online := d.onlineUnheard(v); online != "" && b.unheard == "" {
			b.unheard = fmt.Sprintf("%s recovers in a group with a quorum, and sees %s online there", in.Name, online)
		}
	}
	return b
}

// isJoining reports whether mysqld looks for a group to join.
func isJoining(r core.Report) bool { return r.Reason == core.MemberJoining }

// onlineUnheard names one who is online in a view, and does not tell, now, where it is; "" where there is none.
func (d *decision) onlineUnheard(v *core.GroupView) string {
	for i := range d.Instances {
		in := &d.Instances[i]
		if _, heard := viewOf(in); reaches(v, in.Name) && !(heard && d.isFresh(in)) {
			return in.Name
		}
	}
	return ""
}

// foreignGroup names one who is online in a group with a quorum, and from whom the group
// may not go on.
func (d *decision) foreignGroup() string {
	for i := range d.Instances {
		if in := &d.Instances[i]; isQuorate(in) {
			return in.Name
		}
	}
	return ""
}

func (d *decision) refuseLiving(r *recovery) {
	d.refuse(core.RefusalQuorumPresent, r.unheard+", which the operator cannot reach. That group may still take "+
		"writes, and forcing a quorum beside it would make a second group. Make the unreachable instance reachable. "+
		"If it is gone, wait until the group expels it, then ask again")
}

// dissolve has whoever is in a group leave it, for it to be rebooted by one who holds more than those who are
// online, or where nobody is. The word was of the view of those who were online, and stands when they have left.
func (d *decision) dissolve(r *recovery) {
	what := "the group, in which nobody is online"
	if len(r.survivors) > 0 {
		what = "what is left of the group, because " + r.more +
			" holds transactions that the online members lack"
		d.Plan.Carried.Dissolved = d.Cluster.Group.ForceView
	}
	d.haveLeaveFirst(r.inTheWay(), what, r.lead.Name+" reboots it")
}

// dissolveRecovering has those leave who recover in a group that has its quorum, and is not the one that is forced.
func (d *decision) dissolveRecovering(r *recovery) {
	d.haveLeaveFirst(r.recovering, "a group in which nobody is online", r.leader.Name+" forces the quorum")
}

// haveLeaveFirst has members leave their group, and stay out of any until the epoch in which another goes on. For as
// long as one does not, the word waits.
func (d *decision) haveLeaveFirst(members []*core.Instance, what, then string) {
	var names []string
	for _, in := range members {
		names = append(names, in.Name)
		d.Do(core.ReceivePromise{Instance: in.Name, Epoch: d.nextEpoch()})
	}
	d.Block(core.RefusalQuorumLost, fmt.Sprintf("the group has lost its quorum; the requested recovery waits until "+
		"%s left %s. Then %s. If one does not leave within a minute, delete its Pod: its data is kept",
		agree(names, "has", "have"), what, then))
}
