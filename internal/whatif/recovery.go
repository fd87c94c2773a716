package whatif

import (
	"slices"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/topology"
	"cnmsql.co/internal/gtid"
)

// Recovery is what the operator would do, as things are observed, if a human asked for
// the recovery of a group's quorum.
type Recovery struct {
	// Lead goes on with Members, itself included, as the whole group. With Anew there
	// is no group left: it reboots it, and the others join.
	Lead    string   `json:"lead,omitempty"`
	Members []string `json:"members,omitempty"`
	Anew    bool     `json:"anew,omitempty"`
	// AsItIs: the group of Members has its quorum, and is only to be taken as the whole.
	AsItIs bool `json:"asItIs,omitempty"`
	// LeftOut are the instances that the group goes on without.
	LeftOut []string `json:"leftOut,omitempty"`
	// Gap is what Lead lacks of what was seen in the group, in the operator's words. It goes on with
	// others only when a human accepts that; refused for that alone, it and Lead are known, too. With Anew
	// nobody holds it any more, and the human's word is enough.
	Gap string `json:"gap,omitempty"`
	// Refusal and Because tell why nothing would be done; Because alone, what comes first.
	Refusal core.Reason `json:"refusal,omitempty"`
	Because string      `json:"because,omitempty"`
}

// RecoveryView is the view of the group that a human who sees this asks in: that of those
// who are still online without a quorum, or else the last one that had it.
func RecoveryView(o *core.Observation) string {
	for i := range o.Instances {
		if r, known := o.Instances[i].Report.Get(); known {
			if v := r.Server.View(); v.IsSurvivor() {
				return v.ViewID
			}
		}
	}
	if g := o.Cluster.Status.Group; g != nil {
		return g.ViewID
	}
	return ""
}

// Recover asks the operator's own decision. The cluster must be a group.
func Recover(o core.Observation) Recovery {
	wish := *o.Cluster.Group
	wish.ForceQuorum = true
	o.Cluster.Group = &wish
	plan := topology.Decide(o)
	for _, e := range plan.Effects {
		switch e := e.(type) {
		case core.ForceMembers:
			return without(o, Recovery{Lead: e.Instance, Members: strings.Split(e.Members, ","), Gap: plan.Gap})
		case core.RebootGroup:
			return barring(o, Recovery{Lead: e.Instance, Members: []string{e.Instance}, Anew: true,
				Gap: missing(&o, e.Instance, plan.Carried.Held)})
		}
	}
	refusals := core.RecoveryRefusals()
	for _, n := range plan.Status.Notices {
		if n.Reason == core.ReasonQuorumForced { // and nothing had to be ordered
			return asItIs(o, plan.Status.Group)
		}
		if slices.Contains(refusals, n.Reason) {
			return Recovery{Lead: n.Subject, Refusal: n.Reason, Because: n.Message, Gap: plan.Gap}
		}
	}
	return Recovery{Because: plan.Status.Reason}
}

// RecoverAtALoss is Recover, with the human's word that what the one lacks who goes on may
// be lost.
func RecoverAtALoss(o core.Observation) Recovery {
	refused := Recover(o)
	if refused.Refusal == "" || refused.Lead == "" {
		return refused
	}
	o.Cluster.Override = &core.Override{To: refused.Lead, Epoch: o.Cluster.Status.Epoch}
	return Recover(o)
}

// missing tells what was seen in the group and the lead lacks that reboots it, which is who holds the most; ""
// where nothing is known to be missing. What was seen is what the decision itself goes by.
func missing(o *core.Observation, lead string, seen gtid.Set) string {
	r, known := o.Instance(lead).Report.Get()
	if !known || r.Server == nil {
		return ""
	}
	gap := seen.Subtract(r.Server.Holds())
	if gap.IsEmpty() {
		return ""
	}
	return "no instance still holds what was seen before (" + gap.Abbreviate(4) + ")"
}

// barring adds who was left out before, and is not heard to hold nothing else.
func barring(o core.Observation, r Recovery) Recovery {
	for _, l := range o.Cluster.Status.Group.LeftOut {
		if !l.Admitted && l.Instance != r.Lead {
			r.LeftOut = append(r.LeftOut, l.Instance)
		}
	}
	return r
}

// without adds who is left out.
func without(o core.Observation, r Recovery) Recovery {
	for i := range o.Instances {
		if name := o.Instances[i].Name; !slices.Contains(r.Members, name) {
			r.LeftOut = append(r.LeftOut, name)
		}
	}
	return r
}

func asItIs(o core.Observation, g *core.GroupStatus) Recovery {
	out := Recovery{AsItIs: true}
	for i := range o.Instances {
		name := o.Instances[i].Name
		if g.WentOnWithout(name) {
			continue
		}
		out.Members = append(out.Members, name)
		if o.Instances[i].Report.Is(func(r core.Report) bool { return r.Server.View().Role == core.MemberPrimary }) {
			out.Lead = name
		}
	}
	return without(o, out)
}
