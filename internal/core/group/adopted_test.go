package group

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// adoption holds what would become of the volumes, if the Cluster were deleted now and made anew, against what
// was acknowledged: whoever begins the new group without a human's word holds all of it, and whoever joins it with
// data holds the same under each number.
func (s *sim) adoption() string {
	o := core.Observation{Now: s.now, Cluster: core.Cluster{Name: "c", Wanted: len(s.all), Topology: core.TopologyGroup,
		Group: &core.Group{WishedName: "g-2"}, Status: core.Status{AdoptedFrom: "old"}}}
	for _, in := range s.all {
		if in.data == core.DataPopulated {
			o.Cluster.Status.InstanceNames = append(o.Cluster.Status.InstanceNames, in.name)
			o.Instances = append(o.Instances, s.leftBehind(in))
		}
	}
	for range o.Instances {
		plan := Decide(o)
		if lead := plan.Status.Group.Bootstrapper; lead != "" {
			return s.begins(lead, plan.Status)
		}
		o.Cluster.Status = plan.Status
		o.Instances = slices.DeleteFunc(o.Instances, func(in core.Instance) bool {
			return !slices.Contains(plan.Status.InstanceNames, in.Name)
		})
	}
	return ""
}

// leftBehind is the volume of an instance, as its next manager finds it.
func (s *sim) leftBehind(in *instance) core.Instance {
	out := core.Instance{Name: in.name, Ordinal: in.ordinal}
	out.Volume = core.Known(core.Volume{Exists: true, Bound: true}, s.now, s.now)
	out.Pod = core.Known(core.Pod{Exists: true}, s.now, s.now)
	of := in.of
	if s.mut.sameLineage && of.Group != "" {
		of.Recovery = core.FirstEpoch
	}
	out.Report = core.Known(core.Report{Instance: in.name, State: core.Running, Data: core.DataPopulated, Former: of,
		Server: &core.Server{UUID: "uuid-" + in.name, Executed: in.holds(),
			Group: &core.GroupView{State: core.MemberOffline}}}, s.now, s.now)
	return out
}

func (s *sim) begins(lead string, status core.Status) string {
	if why := s.lacksAcked(lead); why != "" && s.hasQuorum() {
		return "adoption: " + why
	}
	holds := s.get(lead).content
	for _, name := range status.InstanceNames {
		for number, what := range s.get(name).content {
			if is, has := holds[number]; has && is != what && !slices.Contains(status.Diverged, name) {
				return fmt.Sprintf("adoption: %s begins with %d under the number %d, and %s joins with %d", lead, is,
					number, name, what)
			}
		}
	}
	return ""
}

func adoptionMutants() map[string]mutation {
	return map[string]mutation{
		"whoever goes on notes it when it is seen": {keepsLineage: true},
		"adopted volumes of any history compare":   {sameLineage: true},
		"who sees its group go on without a majority thinks nothing of it": {facts: func(f *agent.Facts) {
			f.Member.WentOn = false
		}},
	}
}
