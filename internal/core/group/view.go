package group

import (
	"maps"
	"slices"

	"cnmsql.co/internal/core"
)

// verdict is the group as a majority of those sees it who may be members.
type verdict struct {
	// agreed tells whether there is one. All else is only meaningful if there is.
	agreed bool
	// primary is the elected instance; "" while the group elects one.
	primary string
	viewID  string
	members map[string]core.ViewMember
	online  int
	// lost tells whether somebody who is online says that the majority is gone, or everybody is
	// known not to be online. When neither is so, it is only not known.
	lost bool
}

// vote is what one online member with a quorate view says.
type vote struct {
	by   string
	view *core.GroupView
}

// key tells votes for the same from others.
func (v vote) key() string { return v.view.ViewID + " " + primaryHost(v.view) }

// see counts the votes. The denominator is everybody who may be in the group: all
// instances, or as many as the group was ever seen to have, less those who say
// themselves that they are not online, and those who never had data of the group. Who
// cannot be asked counts. Who was left out on a human's word does not, and has no vote,
// until it was admitted and says what one says who was not, or see takenBack. Who is recovering
// is one of the members of whom the group itself counts its majority: see supported.
func see(o *core.Observation, g *core.GroupStatus) verdict {
	var votes, joined, recovering []vote
	out, absent, unknown, left := verdict{}, 0, 0, 0
	for i := range o.Instances {
		in := &o.Instances[i]
		view, known := viewOf(in)
		switch {
		case g.WentOnWithout(in.Name):
			left++
			if !g.Excludes(in.Name) && known && view.State == core.MemberOnline && view.HasQuorum() {
				joined = append(joined, vote{in.Name, view})
			}
		case !known && g.IsNew(in.Name):
			left++ // its mysqld cannot be a member of anything
		case !known && neverRan(in): // but another may have, that bore its name
			left++
			unknown++
		case !known:
			unknown++
		case view.State == core.MemberRecovering && view.HasQuorum():
			recovering = append(recovering, vote{in.Name, view})
		case view.State != core.MemberOnline:
			absent++
		case !view.HasQuorum():
			out.lost = true
		default:
			votes = append(votes, vote{in.Name, view})
		}
	}
	out.lost = out.lost || unknown == 0 && len(votes) == 0
	for _, j := range joined {
		if isSaid(votes, j) {
			votes = append(votes, j)
			left--
		}
	}
	if len(votes)+len(recovering)+absent == 0 && !out.lost {
		votes = takenBack(o, g, joined)
		left -= len(votes)
	}
	votes, alone := supported(votes, recovering)
	absent += alone
	electorate := max(len(o.Instances)-left, g.ViewMax) - absent
	best, count := most(votes)
	if count < core.Majority(electorate) {
		return out
	}
	return agreedOn(o, best.view)
}

// takenBack are the votes of those who were admitted and have joined, where nobody is heard who
// went on without them, as when that is one and hangs. They have a say if they are a majority of
// all instances, and their view is a later one of the group that was seen when they were admitted,
// with one online who went on: they were in no group then, and have come into none but this.
func takenBack(o *core.Observation, g *core.GroupStatus, joined []vote) (votes []vote) {
	best, count := most(joined)
	if 2*count <= len(o.Instances) || !core.IsLaterView(best.view.ViewID, g.ViewID) ||
		!slices.ContainsFunc(o.Instances, func(in core.Instance) bool {
			return !g.WentOnWithout(in.Name) && slices.ContainsFunc(best.view.Members, func(m core.ViewMember) bool {
				return m.State == core.MemberOnline && core.IsHostOf(m.Host, in.Name)
			})
		}) {
		return nil
	}
	for _, j := range joined {
		if j.key() == best.key() {
			votes = append(votes, j)
		}
	}
	return votes
}

// supported adds to the votes those of members that are recovering and say what one says who
// is online: the group counts them in its majority, and has its quorum by them. The others,
// in an older view or in one of which nobody is heard who is online, have no vote, and are
// as many as are returned.
func supported(votes, recovering []vote) (all []vote, alone int) {
	all = votes
	for _, r := range recovering {
		if isSaid(votes, r) {
			all = append(all, r)
		} else {
			alone++
		}
	}
	return all, alone
}

// isSaid reports whether one of the votes says the same.
func isSaid(votes []vote, as vote) bool {
	return slices.ContainsFunc(votes, func(v vote) bool { return v.key() == as.key() })
}

// most is a vote that most agree with, and how many they are.
func most(votes []vote) (best vote, count int) {
	for _, v := range votes {
		n := 0
		for _, other := range votes {
			if other.key() == v.key() {
				n++
			}
		}
		if n > count {
			best, count = v, n
		}
	}
	return best, count
}

func agreedOn(o *core.Observation, view *core.GroupView) verdict {
	out := verdict{agreed: true, viewID: view.ViewID, members: map[string]core.ViewMember{}}
	for _, m := range view.Members {
		for i := range o.Instances {
			name := o.Instances[i].Name
			if !core.IsHostOf(m.Host, name) {
				continue
			}
			out.members[name] = m
			if m.State == core.MemberOnline {
				out.online++
			}
			if m.State == core.MemberOnline && m.Role == core.MemberPrimary {
				out.primary = name
			}
		}
	}
	return out
}

func primaryHost(v *core.GroupView) string {
	for _, m := range v.Members {
		if m.Role == core.MemberPrimary && m.State == core.MemberOnline {
			return m.Host
		}
	}
	return ""
}

// viewOf is an instance's own word about its group, and whether there is one: see Report.TellsView.
func viewOf(in *core.Instance) (*core.GroupView, bool) {
	if r, known := in.Report.Get(); known {
		return r.TellsView()
	}
	return nil, false
}

// isOnline reports whether the member is online, as the group says.
func (v verdict) isOnline(name string) bool {
	return v.agreed && v.members[name].State == core.MemberOnline
}

// suspects reports whether the group lists a member that it does not reach.
func (v verdict) suspects() bool {
	for _, m := range v.members {
		if m.State == core.MemberUnreachable {
			return true
		}
	}
	return false
}

// older names a member that runs an older MySQL than the named one; "" if none is known
// to. A group makes nobody primary who is newer than another member.
func (v verdict) older(name string) string {
	for _, other := range slices.Sorted(maps.Keys(v.members)) {
		if core.CompareVersions(v.members[other].Version, v.members[name].Version) < 0 {
			return other
		}
	}
	return ""
}
