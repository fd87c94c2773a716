package agent

import (
	"time"

	"cnmsql.co/internal/core"
)

// The group opens its primary for writes, and closes all others. Who has the right may change
// that by hand, and mysqld does not change it back.

// openAfter is how long a primary that IsClosed may stay so: the group may just be about to open
// it, or to close it for another.
const openAfter = 5 * time.Second

// IsClosed reports whether the server is the primary of a group and could take writes, for it has
// applied all that it had received, but is read-only.
func IsClosed(s *core.Server) bool {
	g := s.Group
	return g != nil && g.IsQuorate() && g.Role == core.MemberPrimary && (s.SuperReadOnly || s.ReadOnly) &&
		s.Executed.Contains(g.Received)
}

// MayOpen reports whether the member may be made writable, by what its server says in this very moment: it
// may have answered no question about its group for as long as it IsClosed, and another be primary by now.
// While this one hands over, the group has closed it.
func (m *MemberFacts) MayOpen(s *core.Server) bool {
	return s != nil && IsClosed(s) && m.HandingTo == ""
}

// closeSecondary makes a secondary read-only that somebody made writable. What a client writes to a
// secondary is acknowledged, and a group with one primary does not look for conflicts: the data
// diverge in silence. Without a majority nothing is committed, and mysqld could not be closed.
func closeSecondary(f *Facts) (Decision, bool) {
	v := f.view()
	if !v.IsQuorate() || v.Role != core.MemberSecondary || f.Member.Settled != v.Role || f.Server.SuperReadOnly {
		return pass()
	}
	return tell(core.Running, core.InstanceDemoting, "mysqld was made writable, although this instance is a "+
		"secondary of its group",
		CloseForWrites{})
}

// openPrimary makes the primary of the group writable that somebody made read-only. Nobody
// else may take writes.
func openPrimary(f *Facts) (Decision, bool) {
	since := f.Member.ClosedSince
	if !f.Member.MayOpen(f.Server) || f.Member.Settled != core.MemberPrimary ||
		since.IsZero() || f.Now.Sub(since) < openAfter {
		return pass()
	}
	return tell(core.Running, "", "mysqld was made read-only, although this instance is the primary of its group",
		OpenForWrites{})
}
