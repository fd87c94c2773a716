package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// missing is what was seen in the group, and is not where it goes on.
type missing struct {
	seen    map[int]int // what the operator has seen the primary to hold, by numbers
	lacking string      // who would go on, and lacks what was seen
	// accepted is who was told to go on although it lacks that, since the group had its quorum.
	accepted string
	// foresees: the human who asks knows what would be missing, and accepts it.
	foresees bool
}

// asks: a human asks for the quorum, and accepts what is missing where that was told.
func (s *sim) asks() {
	s.cluster.Group.ForceQuorum = true
	if s.lacking != "" {
		s.tellf("a human accepts what %s lacks", s.lacking)
		s.cluster.Override = &core.Override{To: s.lacking, Epoch: s.cluster.Status.Epoch}
	}
	s.lacking = ""
}

// looksFirst takes a human's word back where members have a quorum of whom none tells the operator of it: the
// runbook has him see first that they are dead. Nobody else could.
func (s *sim) looksFirst(o *core.Observation) {
	if !o.Cluster.Group.ForceQuorum || !s.hasQuorum() || slices.ContainsFunc(s.view, func(name string) bool {
		in := s.get(name)
		return in.runs() && in.answers() && !in.deaf
	}) {
		return
	}
	s.tellf("a human sees that %s live, and asks for nothing", strings.Join(s.view, ", "))
	s.cluster.Group.ForceQuorum, o.Cluster.Group.ForceQuorum = false, false
}

// foresee: what would be missing is accepted together with the request, as by a human who has
// looked first.
func (s *sim) foresee(o *core.Observation) {
	s.looksFirst(o)
	if !s.foresees || !o.Cluster.Group.ForceQuorum {
		return
	}
	s.foresees = false
	if lacking := refusedFor(Decide(*o)); lacking != "" {
		s.tellf("a human accepts what %s would lack", lacking)
		s.cluster.Override = &core.Override{To: lacking, Epoch: o.Cluster.Status.Epoch}
		o.Cluster.Override = s.cluster.Override
	}
}

// witness keeps what the operator has seen the group's primary to hold, and who was said to
// lack something of it.
func (s *sim) witness(plan core.Plan) {
	in := s.get(s.primary)
	if plan.Status.Group.HasQuorum {
		s.lacking, s.accepted = "", ""
		if s.hasQuorum() && plan.Status.Group.Primary == s.primary && !in.deaf && in.answers() {
			s.seen = maps.Clone(in.content)
		}
	}
	if slices.Contains(plan.Effects, core.Effect(core.ClearForceQuorum{})) {
		s.lacking = refusedFor(plan)
	}
}

// refusedFor is who would have gone on, where a plan refuses that for what it lacks.
func refusedFor(plan core.Plan) string {
	carriedOut := slices.ContainsFunc(plan.Effects, func(e core.Effect) bool {
		_, forces := e.(core.ForceMembers)
		_, reboots := e.(core.RebootGroup)
		return forces || reboots
	})
	for _, n := range plan.Status.Notices {
		if n.Reason == core.RefusalNoSafeSurvivor && n.Subject != "" && !carriedOut {
			return n.Subject
		}
	}
	return ""
}

// accepts reports whether a human has said that what the instance lacks may be lost, in the epoch of the order.
func (s *sim) accepts(instance string) bool {
	given := s.cluster.Override
	return given != nil && *given == core.Override{To: instance, Epoch: s.before.Epoch}
}

// overlooks: those who are to go on lack what the operator has seen, and no human has said
// that it may be lost. Who was told to go on with that word may be told again, if nothing came of it.
func (s *sim) overlooks(e core.ForceMembers) string {
	if s.accepts(e.Instance) {
		s.accepted = e.Instance
	}
	if s.accepted == e.Instance {
		return ""
	}
	for number, what := range s.seen {
		if !slices.ContainsFunc(strings.Split(e.Members, ","), func(name string) bool {
			return s.get(name).content[number] == what
		}) {
			return fmt.Sprintf("I3: %s goes on without a word about %d, which was seen under the number %d, and none "+
				"of them holds", e.Members, what, number)
		}
	}
	return ""
}

// gapMutants are mistakes about what was seen in a group that has lost its quorum.
func gapMutants() map[string]mutation {
	return map[string]mutation{
		"what was seen is not missed when a quorum is forced": {observe: func(o *core.Observation) {
			if !o.Cluster.Group.ForceQuorum {
				return
			}
			if g := o.Cluster.Status.Group; g != nil && g.ViewID != "" {
				again := *g
				again.ViewID = "another:1"
				o.Cluster.Status.Group = &again
			}
			o.Carried.Held = gtid.Set{}
			o.Instances = slices.Clone(o.Instances)
			for i := range o.Instances {
				o.Instances[i].LastExecuted = core.Fact[gtid.Set]{}
			}
		}},
		"what is lost counts as accepted": {observe: func(o *core.Observation) {
			if !o.Cluster.Group.ForceQuorum {
				return
			}
			for i := range o.Instances {
				if v, known := viewOf(&o.Instances[i]); known && v.IsSurvivor() {
					o.Cluster.Override = &core.Override{To: o.Instances[i].Name, Epoch: o.Cluster.Status.Epoch}
				}
			}
		}},
	}
}
