package group

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"cnmsql.co/internal/core"
)

// setBacks has the Cluster's status be one of before at times, as when etcd is restored from a backup. Its
// dice are its own; nil where it never is.
type setBacks struct {
	*rand.Rand
	kept []core.Status
	// highest is the last epoch that there ever was.
	highest int64
}

func (s *sim) drawSetBacks(seed uint64) {
	if seed%11 == 7 {
		s.setBacks.Rand = rand.New(rand.NewPCG(seed, 67))
	}
}

// setBackNow keeps a status to go back to, and goes back at times to one of an earlier epoch.
func (s *sim) setBackNow(step func(int) string) string {
	b := &s.setBacks
	if b.Rand == nil || !s.cluster.Status.Group.WasMade() {
		return ""
	}
	now := s.cluster.Status
	b.kept = append(b.kept, cloned(now))
	earlier := slices.DeleteFunc(slices.Clone(b.kept), func(k core.Status) bool { return k.Epoch >= now.Epoch })
	if len(earlier) == 0 || b.IntN(3) > 0 {
		return ""
	}
	s.cluster.Status = cloned(earlier[b.IntN(len(earlier))])
	s.tellf("the status of epoch %d is set back to epoch %d", now.Epoch, s.cluster.Status.Epoch)
	for _, name := range s.cluster.Status.InstanceNames {
		ordinal := 0
		_, _ = fmt.Sscanf(name, "c-%d", &ordinal)
		s.make(name, ordinal)
	}
	if b.IntN(2) == 0 { // the operator began anew with it
		s.memory = core.Carried{}
		for _, in := range s.all {
			in.heard = core.Heard{Executed: in.heard.Executed}
		}
	}
	s.past = true
	if b.IntN(2) == 0 { // managers hear it before the operator does
		if why := s.letManagersAct(s.hasQuorum()); why != "" {
			return why
		}
	}
	return step([]int{0, 14}[b.IntN(2)])
}

// cloned shares nothing with a status that changes.
func cloned(s core.Status) core.Status {
	if s.Group != nil {
		g := *s.Group
		g.LeftOut, g.Recoveries, g.New = slices.Clone(g.LeftOut), slices.Clone(g.Recoveries), slices.Clone(g.New)
		g.Members = slices.Clone(g.Members)
		s.Group = &g
	}
	s.Diverged, s.Fenced = slices.Clone(s.Diverged), slices.Clone(s.Fenced)
	s.InstanceNames, s.Notices = slices.Clone(s.InstanceNames), slices.Clone(s.Notices)
	return s
}

// seenEpoch is the highest epoch of the status that those have seen who are heard.
func (s *sim) seenEpoch() (last int64) {
	for _, in := range s.all {
		if in.runs() && !in.deaf {
			last = max(last, in.viewEpoch)
		}
	}
	return last
}

// lastEpoch is the highest that anybody has seen.
func (s *sim) lastEpoch() (last int64) {
	for _, in := range s.all {
		last = max(last, in.viewEpoch)
	}
	return last
}

// isPast reports whether one who is heard has seen a later epoch of the status.
func (s *sim) isPast() bool { return s.seenEpoch() > s.cluster.Status.Epoch }

// checkEpoch holds the status against the epochs that those have seen of it who are heard: no epoch is begun
// that was one before.
func (s *sim) checkEpoch(before core.Status) string {
	now := s.cluster.Status
	if now.Epoch > before.Epoch && now.Epoch <= s.seenEpoch() {
		return fmt.Sprintf("epoch %d is begun, and epoch %d was seen", now.Epoch, s.seenEpoch())
	}
	return ""
}

// theirs is what ends a story from which on all is for humans to judge: by a status of the past one is needed
// to have the group go on, those have a quorum whom the group went on without, or nobody is left who knows
// that it is of the past.
const theirs = "a human has to judge"

// hindsight takes back the words of humans while the status is of the past, for whom the group went on without
// is not in it; and ends the story where nothing helps but one.
func (s *sim) hindsight(inTheEnd bool) string {
	b := &s.setBacks
	b.highest = max(b.highest, s.cluster.Status.Epoch)
	switch {
	case b.Rand == nil:
		return ""
	case b.highest > max(s.lastEpoch(), s.cluster.Status.Epoch): // with the volumes of all who had seen it
		return theirs
	case !s.isPast():
		return ""
	}
	s.cluster.Group.ForceQuorum = false
	isApart := slices.ContainsFunc(s.all, func(in *instance) bool {
		return in.stale != nil && s.says(in).HasQuorum()
	})
	if inTheEnd || isApart {
		return theirs
	}
	return ""
}

// setBackMutants are mistakes about a status that was set back.
func setBackMutants() map[string]mutation {
	return map[string]mutation{
		"that the status was set back is not noticed": {observe: func(o *core.Observation) {
			o.Instances = slices.Clone(o.Instances)
			for i := range o.Instances {
				in := &o.Instances[i]
				for _, word := range []*core.Fact[core.Report]{&in.Report, &in.Latest} {
					if r, known := word.Get(); known {
						r.ViewEpoch = min(r.ViewEpoch, o.Cluster.Status.Epoch)
						*word = core.Known(r, o.Now, o.Now)
					}
				}
			}
		}},
		"what a status that was set back has forgotten counts as archived": {
			plan: func(o *core.Observation, p *core.Plan) {
				isMended := func(e core.Event) bool { return e.Reason == core.ReasonStatusRestored }
				if slices.ContainsFunc(p.Events, isMended) {
					again := *p.Status.Group
					again.Recoveries = o.Cluster.Status.Group.Recoveries
					p.Status.Group = &again
				}
			}},
		"whoever is out of the group when its status is mended joins as others do": {
			plan: func(_ *core.Observation, p *core.Plan) {
				isMended := func(e core.Event) bool { return e.Reason == core.ReasonStatusRestored }
				if slices.ContainsFunc(p.Events, isMended) {
					again := *p.Status.Group
					again.LeftOut = nil
					p.Status.Group = &again
				}
			}},
	}
}
