package agent

import (
	"time"

	"cnmsql.co/internal/core"
)

// See takes note of what mysqld says of its group.
func (m *MemberFacts) See(server *core.Server, now time.Time) {
	m.WentOn = m.WentOn || m.AdmittedEpoch == 0 && wentOn(m.Last, server.Group)
	m.Last = server.Group
	m.ClosedSince = sinceWhen(m.ClosedSince, IsClosed(server), now)
	m.QuorateSince = sinceWhen(m.QuorateSince, server.HasView() && server.Group.IsQuorate(), now)
	m.ErrorSince = sinceWhen(m.ErrorSince, server.HasView() && server.Group.State == core.MemberError, now)
	m.SeeView(server.Group)
}

// wentOn reports whether a group that had lost its quorum has one again with a minority of its members: somebody
// forced that.
func wentOn(before, now *core.GroupView) bool {
	return before != nil && now != nil && before.IsSurvivor() && now.IsQuorate() && before.ViewID != now.ViewID &&
		2*len(now.Members) <= len(before.Members)
}

// sinceWhen is since when something has been so; zero while it is not.
func sinceWhen(before time.Time, is bool, now time.Time) time.Time {
	switch {
	case !is:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

// ServerEnded forgets what mysqld had been told, for the next one has not been. again says whether
// an order to make the group may be carried out by the next.
func (m *MemberFacts) ServerEnded(again bool) {
	m.Settled, m.ProtocolOf, m.Admitted, m.Last = "", "", "", nil
	m.RejoinHeld, m.ExpelHeld, m.Bootstraps, m.WentOn = false, false, false, false
	if !again {
		m.RebootEpoch = 0
	}
}

// Tried notes what came of joining the group, or of making it: why it failed, "" if it did not. What was
// broken off has not failed.
func (m *MemberFacts) Tried(why string, brokenOff bool, now time.Time) {
	m.TriedAt = now
	switch {
	case why == "":
		m.Failed, m.RebootEpoch = "", 0 // carried out: who leaves this group later joins again
	case !brokenOff:
		m.Failed = why
	}
}

// Remembered notes that the volume tells of which history the data are.
func (m *MemberFacts) Remembered() { m.WentOn = false }

// Left notes that the group was left. Whoever returns joins without a pause.
func (m *MemberFacts) Left(returns bool, now time.Time) {
	m.Settled = ""
	if !returns {
		m.TriedAt = now
	}
}
