package agent

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// HungPrimaryLimit is how long mysqld of the group's primary may answer nobody before it is killed: as long
// as a volume may take for one write, and longer than the group waits for a member of which the process is
// silent. core.HungLimit is for whom nobody takes over from; and in a pair or quorum others take over
// sooner, for there the manager is asked first.
const HungPrimaryLimit = 6 * time.Second

// endHung kills mysqld when it answers nobody, and the group has expelled it and goes on. mysqld
// holds nothing that the group needs, and would never come back by itself.
func endHung(f *Facts) (Decision, bool) {
	if !f.hangs() || !f.Cluster.Group.GoneOn {
		return pass()
	}
	return tell(core.Hung, core.InstanceNoAnswer, "mysqld runs but does not answer, and the group continues without "+
		"it: the manager kills and restarts it",
		StopServer{Kill: true, Why: "it does not answer, and the group continues without it"})
}

// endHungPrimary kills mysqld of the group's primary when it can end no commit, and the others are a
// majority without it. As long as the group's threads in it live, they see it ONLINE; once these are killed,
// they expel it and elect another. They have all that was acknowledged. A process that waits for its volume
// does not end before the volume lets it, but its threads that wait for nothing do. It is killed once.
func endHungPrimary(f *Facts) (Decision, bool) {
	m := f.Mysqld
	hangs := f.hangs() && f.Now.Sub(m.AnsweredAt) >= HungPrimaryLimit
	if !m.Up || m.ToEnd || m.Ending || !hangs && !(m.Accepted && m.DiskStalled) || !f.isReplaceable() {
		return pass()
	}
	reason, what := core.InstanceNoAnswer, "mysqld answers nobody"
	if m.DiskStalled {
		reason, what = core.InstanceDiskStalled, "the volume completes no write"
	}
	return tell(core.Hung, reason, what+": the manager kills mysqld, so that the others elect another primary",
		StopServer{Kill: true, Why: "it is the primary and ends no commit, and the others are a majority"})
}

// isReplaceable reports whether mysqld is the group's primary, and those others whom it saw online in the view
// that it told last, and whom the operator sees online now, are a majority of that view. It may have been elected
// since. Who has left the group since is no part of that any more: the operator tells it of a later view.
func (f *Facts) isReplaceable() bool {
	v, g := f.Member.Last, f.Cluster.Group
	if v == nil || v.State != core.MemberOnline || !g.HasQuorum || f.Cluster.CurrentPrimary != f.Me {
		return false
	}
	others, all, isLater := 0, len(v.Members), core.IsLaterView(g.ViewID, v.ViewID)
	for _, m := range v.Members {
		isOther := func(name string) bool { return name != f.Me && core.IsHostOf(m.Host, name) }
		switch {
		case isLater && slices.ContainsFunc(g.Outside, isOther):
			all--
		case m.State == core.MemberOnline && slices.ContainsFunc(g.Online, isOther):
			others++
		}
	}
	return 2*others > all
}
