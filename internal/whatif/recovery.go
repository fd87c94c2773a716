package whatif

import (
	"slices"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/topology"
)

// Recovery is what the operator would do, as things are observed, if a human asked for
// the recovery of a group's quorum.
type Recovery struct {
	// Lead goes on with Members, itself included, as the whole group. With Anew there
	// is no group left: it makes it anew, and the others join.
	Lead    string   `json:"lead,omitempty"`
	Members []string `json:"members,omitempty"`
	Anew    bool     `json:"anew,omitempty"`
	// LeftOut are the instances that the group goes on without.
	LeftOut []string `json:"leftOut,omitempty"`
	// Refusal and Because tell why nothing would be done.
	Refusal core.Reason `json:"refusal,omitempty"`
	Because string      `json:"because,omitempty"`
}

// Recover asks the operator's own decision. The cluster must be a group.
func Recover(o core.Observation) Recovery {
	wish := *o.Cluster.Group
	wish.ForceQuorum = true
	o.Cluster.Group = &wish
	o.Cluster.Status.Reason = "" // what was said before would not be told as an event again
	plan := topology.Decide(o)
	for _, e := range plan.Effects {
		switch e := e.(type) {
		case core.ForceMembers:
			out := Recovery{Lead: e.Instance, Members: strings.Split(e.Members, ",")}
			for i := range o.Instances {
				if name := o.Instances[i].Name; !slices.Contains(out.Members, name) {
					out.LeftOut = append(out.LeftOut, name)
				}
			}
			return out
		case core.RebootGroup:
			return Recovery{Lead: e.Instance, Members: []string{e.Instance}, Anew: true}
		}
	}
	refusals := []core.Reason{core.RefusalQuorumPresent, core.RefusalNoSafeSurvivor, core.RefusalMembersUnknown}
	for _, e := range plan.Events {
		if slices.Contains(refusals, e.Reason) {
			return Recovery{Refusal: e.Reason, Because: e.Message}
		}
	}
	return Recovery{Refusal: core.RefusalMembersUnknown, Because: plan.Status.Reason}
}
