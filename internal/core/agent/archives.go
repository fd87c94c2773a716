package agent

import "cnmsql.co/internal/core"

// MemberWrites is the epoch in which a member takes writes, 0 when it takes none: the highest that
// it has seen. The group itself opens and closes its members, before the operator knows of it.
func MemberWrites(s *core.Server, seen int64) int64 {
	if g := s.Group; s.SuperReadOnly || g.State != core.MemberOnline || g.Role != core.MemberPrimary {
		return 0
	}
	return max(1, seen)
}

// ArchivesIn is the epoch in which an instance archives what it writes, 0 when it does not; writes
// is that in which it takes writes. The primary of a group archives once the Cluster names it, in
// the epoch in which it does, and while the group has not gone on without it: what it would
// archive in a later epoch is not the group's. Nor does it where a recovery was ordered and not seen
// since: in the archive it would stand for one that came about.
func (c *Cluster) ArchivesIn(me string, writes int64) int64 {
	switch {
	case c == nil, writes == 0:
		return 0
	case !c.Topology.ElectsByItself():
		return writes
	case c.CurrentPrimary != me, c.Group.isExcluded(), c.Group.isUndecided():
		return 0
	}
	return c.Epoch
}

// KeepsLogs reports whether this instance archives nothing now, and is to go on later with what it
// has not archived. It does so while it takes writes in a group of which nobody knows whether it
// went on without some of its members. Binary logs that are purged meanwhile leave a gap that no
// restore passes. It is for a Cluster that archives.
func (f *Facts) KeepsLogs() bool {
	if !f.Mysqld.Accepted || f.Cluster == nil {
		return false
	}
	g := f.Cluster.Group
	return g.isUndecided() && !g.isExcluded() && (f.Server == nil || f.WritableEpoch != 0)
}

// MayPurge tells whether mysqld may purge binary logs by its own rule, archived or not, where this
// instance archives nothing: mysqld can be told to, and it is known that this instance is not about
// to take writes, or to archive again. Archives is whether the Cluster does.
func (f *Facts) MayPurge(archives bool) bool {
	return f.Mysqld.Accepted && f.Cluster != nil && !f.Permitted() && !(archives && f.KeepsLogs())
}
