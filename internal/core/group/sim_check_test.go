package group

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cnmsql.co/internal/core"
)

// check holds an effect against what is true.
func (s *sim) check(e core.Effect, had bool, primary string) string {
	switch e := e.(type) {
	case core.RebootGroup:
		return s.checkReboot(e.Instance, had)
	case core.ForceMembers:
		if had {
			return "I1: a quorum was forced beside one that there is"
		}
		s.ordered, s.delay = &e, s.rng.IntN(4)
		return cmp.Or(s.forgets(e), s.overlooks(e))
	case core.DeleteInstance:
		if in := s.get(e.Instance); !in.errant.IsEmpty() {
			return "I4: data that nobody else has was removed: " + e.Instance
		}
		if s.isMember(e.Instance) && s.get(e.Instance).joined {
			return "a member was removed before it left the group: " + e.Instance
		}
	case core.RouteWrites:
		if had && e.Instance != primary && !s.get(e.Instance).deaf {
			return fmt.Sprintf("writes were led to %s, and the group has elected %s", e.Instance, primary)
		}
	}
	return ""
}

// forgets: a survivor who is heard, and not among those who are to go on, holds what was
// acknowledged and none of these does.
func (s *sim) forgets(e core.ForceMembers) string {
	has := func(number, what int) bool {
		return slices.ContainsFunc(strings.Split(e.Members, ","), func(name string) bool {
			return s.get(name).content[number] == what
		})
	}
	for _, in := range s.all {
		v := s.says(in)
		if in.deaf || !in.answers() || in.state != "" || v.State != core.MemberOnline || v.HasQuorum() ||
			s.before.Group.Excludes(in.name) {
			continue
		}
		for number, what := range s.acked {
			if in.content[number] == what && !has(number, what) {
				return fmt.Sprintf("I3: %s goes on, and not %s, which alone holds %d under the number %d, which was "+
					"acknowledged", e.Members, in.name, what, number)
			}
		}
	}
	return ""
}

func (s *sim) checkReboot(lead string, had bool) string {
	if had {
		return "I5: the group was rebooted beside one that there is"
	}
	if s.accepts(lead) {
		s.goesOnFrom(lead)
		return ""
	}
	return s.lacksAcked(lead)
}

// lost: the primary of a group with a majority lacks what was acknowledged, though no human accepted it.
// As long as the group lasts, the volume of one member is no excuse: a majority had accepted all.
func (s *sim) lost() string {
	if s.primary == "" || !s.hasQuorum() {
		return ""
	}
	return s.lacks(s.primary)
}

// lacksAcked is what whoever reboots the group lacks, when no volume was lost.
func (s *sim) lacksAcked(primary string) string {
	if len(s.gone) > 0 {
		return ""
	}
	return s.lacks(primary)
}

func (s *sim) lacks(primary string) string {
	for number, what := range s.acked {
		if holds := s.get(primary).content[number]; holds != what {
			return fmt.Sprintf("I2: %s goes on and holds %d under the number %d, for which %d was acknowledged",
				primary, holds, number, what)
		}
	}
	return ""
}

// mixed: a member of the group holds something else under a number than its primary.
func (s *sim) mixed() string {
	if s.primary == "" || !s.hasQuorum() {
		return ""
	}
	truth := s.get(s.primary).content
	for _, name := range s.view {
		for number, what := range s.get(name).content {
			if is, has := truth[number]; s.reaches(name, s.primary) && has && is != what {
				return fmt.Sprintf("%s is a member and holds %d under the number %d, where the primary %s holds %d",
					name, what, number, s.primary, is)
			}
		}
	}
	return ""
}

// checkRevived accepts what is lost where a human takes those for the group who were left out: the others' volumes
// may be gone.
func (s *sim) checkRevived(primary string) {
	if len(s.gone) > 0 {
		s.goesOnFrom(primary)
	}
}

// goesOnFrom forgets what is lost where the instance goes on: a human accepted that.
func (s *sim) goesOnFrom(instance string) {
	s.acked = map[int]int{}
	maps.Copy(s.acked, s.get(instance).content)
}
