package group

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// reboot has the instance that holds all reboot the group, on a human's word.
func (d *decision) reboot(r *recovery) {
	if r.gap == "" {
		d.rebootFrom(r.lead, core.ReasonQuorumForced, asAsked+", "+holdsAll(r.lead))
		return
	}
	d.rebootFrom(r.lead, core.ReasonQuorumForced, fmt.Sprintf("%s, %s reboots the group; a human accepted that %s",
		asAsked, r.lead.Name, r.gap))
}

func holdsAll(lead *core.Instance) string {
	return lead.Name + ", which holds all that any instance holds, reboots the group"
}

// rebootFrom has lead reboot the group, and tells why.
func (d *decision) rebootFrom(lead *core.Instance, reason core.Reason, text string) {
	d.Status.Epoch = d.nextEpoch()
	held := draft.Held([]*core.Instance{lead})
	d.countOn([]string{lead.Name}, held, held)
	d.beginRecovery(core.StepReboot, reason, lead.Name, core.RebootGroup{Instance: lead.Name, Epoch: d.Status.Epoch})
	d.Announce(true, reason, lead.Name, text)
}

// orderHeard is how long an order to reboot the group has until its effect is heard of.
const orderHeard = 3 * time.Second

// orderAgain gives the order to reboot the group once more, in the epoch that it was given in, where it was
// lost: the operator ended before it gave it, or the manager or mysqld after that. What it rested on is so
// still: nobody is admitted, or counts, before the group is seen, and nobody was heard in one.
func (d *decision) orderAgain(op *core.Operation) {
	if op.Step != core.StepReboot {
		return
	}
	d.lookAgain(nil)
	if heard := op.StartedAt.Add(orderHeard); d.Now.Before(heard) {
		d.RecheckAt(heard)
		return
	}
	if d.lacksOrder(d.Instance(op.To)) && d.othersAreOut(op.To) {
		d.Do(core.RebootGroup{Instance: op.To, Epoch: d.Status.Epoch})
	}
}

// lacksOrder reports whether an instance that was to reboot the group could, and says nothing of that.
func (d *decision) lacksOrder(lead *core.Instance) bool {
	return d.isOut(lead) && d.awaits(lead) == "" && !d.IsFenced(lead.Name) && !wasToldToReboot(lead) &&
		lead.Report.Is(func(r core.Report) bool { return r.Data == core.DataPopulated })
}

// othersAreOut reports whether all others are known to be in no group, and excluded from that which is to be.
func (d *decision) othersAreOut(lead string) bool {
	return !slices.ContainsFunc(d.Instances, func(in core.Instance) bool {
		return in.Name != lead && (!d.isOut(&in) || !d.g.Excludes(in.Name))
	})
}

// isOut reports whether the instance is in no group now.
func (d *decision) isOut(in *core.Instance) bool {
	v, heard := viewOf(in)
	return heard && d.isFresh(in) && v.State == core.MemberOffline
}

// wasToldToReboot reports whether the instance says that it is about to make the group, or tries to.
func wasToldToReboot(in *core.Instance) bool {
	return in.Report.Is(func(r core.Report) bool {
		return r.Reason == core.MemberRebooting || r.Reason == core.MemberBootstrapping ||
			r.Reason == core.MemberJoinFailed
	})
}

// rebootFails is why an instance that was told to make the group again cannot, in its own words; "" where
// none says so.
func (d *decision) rebootFails() string {
	for i := range d.Instances {
		r, known := d.Instances[i].Report.Get()
		if known && r.Reason == core.MemberJoinFailed && r.Server.HasView() &&
			r.Server.Group.State == core.MemberOffline {
			return d.Instances[i].Name + ": " + r.Problem().String()
		}
	}
	return ""
}

// outOfHistory reports whether the instance holds what was never the group's. One that was
// left out is a recovery source only when nobody went on without it, so that there is no
// history that it is out of.
func (d *decision) outOfHistory(in *core.Instance) bool {
	return slices.Contains(d.Status.Diverged, in.Name) && !d.g.Excludes(in.Name)
}

// rebootLead is who could reboot the group, or why nobody can. Everybody must be
// known, for an instance that is not may hold acknowledged transactions that the others
// lack. What a diverged one holds besides was never the group's.
func (d *decision) rebootLead() (lead *core.Instance, reason core.Reason, why string) {
	var members []*core.Instance
	var unknown []string
	for _, in := range d.recoverySources() {
		r, known := in.Report.Get()
		switch {
		case !known || r.Server == nil || r.Data != core.DataPopulated:
			unknown = append(unknown, in.Name)
		case !d.outOfHistory(in):
			members = append(members, in)
		}
	}
	if len(unknown) > 0 {
		text :=
			"what %s holds is not known: bring it back first, or, if it is gone for good, delete its " +
				"PersistentVolumeClaim, then its Pod"
		if len(unknown) > 1 {
			text =
				"what %s hold is not known: bring them back first, or, if they are gone for good, delete their " +
					"PersistentVolumeClaims, then their Pods"
		}
		return nil, core.RefusalMembersUnknown, fmt.Sprintf(text, strings.Join(unknown, ", "))
	}
	d.fencedLast(members)
	lead = draft.Dominating(members)
	switch {
	case len(members) == 0:
		return nil, core.RefusalNoSafeSurvivor, d.nothingLeft()
	case lead == nil:
		return nil, core.RefusalNoSafeSurvivor, incomparable(members)
	}
	return lead, "", ""
}

// nothingLeft tells what can be done when nobody's data is the group's.
func (d *decision) nothingLeft() string {
	var keep []string
	for i := range d.Instances {
		in := &d.Instances[i]
		if r, known := in.Report.Get(); known && r.Data == core.DataPopulated && !in.SaysEmpty() {
			keep = append(keep, in.Name)
		}
	}
	text := "no instance holds the data of the group any more: restore a backup into a new Cluster"
	if len(keep) > 0 {
		text += ", or save the data of " + strings.Join(keep, ", ") +
			", which diverged from the group or was excluded from it, and load that. Delete none of them before"
	}
	return text
}

// incomparable tells what each lacks of what the others hold, and what a human can do.
func incomparable(all []*core.Instance) string {
	var lacks []string
	for _, in := range all {
		r, known := in.Report.Get()
		if !known || r.Server == nil {
			lacks = append(lacks, "what "+in.Name+" holds is not known")
			continue
		}
		lacks = append(lacks, fmt.Sprintf("%s lacks %s", in.Name,
			draft.Held(all).Subtract(r.Server.Holds()).Abbreviate(4)))
	}
	return "no instance holds all transactions: " + strings.Join(lacks, "; ") +
		". Check these transactions, and save what you need; then delete the PersistentVolumeClaim, then the Pod, of " +
		"each instance whose own transactions you give up, and request the recovery"
}
