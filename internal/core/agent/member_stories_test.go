package agent

import (
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

func newMember() *Facts {
	f := fresh()
	f.Cluster.Epoch = 1
	f.Cluster.Topology = core.TopologyGroup
	f.Cluster.Group = &Membership{Name: "g-1", Bootstrapper: "db-1"}
	return f
}

func member() *Facts {
	f := populated()
	f.Cluster.Topology = core.TopologyGroup
	f.Cluster.Group = &Membership{Name: "g-1", Bootstrapper: "db-2", Bootstrapped: true, Rejoins: true}
	f.Cluster.CurrentPrimary = "db-2"
	f.Member = MemberFacts{Of: core.LineageOf("g-1", nil), Settled: core.MemberSecondary, ProtocolOf: "9.7.4",
		Forgot: "v:1"}
	f.Server.UUID = "1"
	f.Server.Group = &core.GroupView{State: core.MemberOnline, Role: core.MemberSecondary, ViewID: "v:1",
		Members: []core.ViewMember{
			{Host: "db-1", UUID: "1", State: core.MemberOnline, Role: core.MemberSecondary, Version: "9.7.4"},
			{Host: "db-2", UUID: "2", State: core.MemberOnline, Role: core.MemberPrimary, Version: "9.7.4"},
			{Host: "db-3", UUID: "3", State: core.MemberOnline, Role: core.MemberSecondary, Version: "9.7.4"},
		}}
	return f
}

func (s *story) group(key, value string) bool {
	g, m := s.f.Cluster.Group, &s.f.Member
	switch key {
	case "name":
		g.Name = value
	case "made":
		g.Bootstrapped = value != "no"
	case "by":
		g.Bootstrapper = value
	case "addresses":
		g.Addresses = strings.Split(value, ",")
	case "of":
		m.Of = core.LineageOf(value, nil)
	case "reboot":
		m.RebootEpoch = number(value)
	case "bootstraps":
		m.Bootstraps = value != "no"
	case "tried":
		m.TriedAt = s.f.Now
	case "failed":
		m.Failed = value
	case "settled":
		m.Settled = core.MemberRole(value)
	case "handing":
		if m.HandingTo = value; value == "no" {
			m.HandingTo = ""
		}
	case "admitted":
		m.Admitted = value
	case "forgot":
		m.Forgot = value
	case "held-rejoin":
		m.RejoinHeld = value != "no"
	case "rejoins":
		g.Rejoins = value != "no"
	case "error": // for so many seconds
		m.ErrorSince = s.f.Now.Add(-time.Duration(number(value)) * time.Second)
	case "held-expel":
		m.ExpelHeld = value != "no"
	case "quorate":
		m.QuorateSince = s.f.Now.Add(-time.Duration(number(value)) * time.Second)
	case "gone-on":
		g.GoneOn = value != "no"
	case "ordered":
		m.AdmittedEpoch = number(value)
	case "excluded":
		g.Excluded = value != "no"
	case "held":
		g.Held = set(value)
	case "unnoted":
		s.f.Unnoted = value != "no"
	case "closed": // for so many seconds
		m.ClosedSince = s.f.Now.Add(-time.Duration(number(value)) * time.Second)
	case "protocol":
		m.ProtocolOf = value
	default:
		return s.majority(key, value)
	}
	return true
}

// majority is what tells whether the others are one, and whether what the Cluster says of them is of the past.
func (s *story) majority(key, value string) bool {
	g, m := s.f.Cluster.Group, &s.f.Member
	switch key {
	case "quorum":
		g.HasQuorum = value != "no"
	case "online":
		g.Online = strings.Split(value, ",")
	case "seen":
		m.ViewEpoch = number(value)
	case "recovered": // in an epoch, as the Cluster says
		g.Recoveries = []core.GroupRecovery{{Epoch: number(value)}}
	case "went-through": // a recovery, as the volume says
		m.Of.Recovery = number(value)
	case "undecided":
		g.Undecided = value != "no"
	case "last": // what mysqld told last, as primary or secondary
		last := *s.f.Server.Group
		last.Role = core.MemberRole(value)
		m.Last = &last
	default:
		return false
	}
	return true
}

func (s *story) view(key, value string) bool {
	v := s.f.Server.Group
	switch key {
	case "state":
		v.State = core.MemberState(value)
		if v.State == core.MemberOffline {
			v.Members, v.Role = nil, ""
		}
		s.f.Member.SeeView(v)
	case "writable":
		s.f.Server.SuperReadOnly, s.f.Server.ReadOnly = value == "no", value == "no"
	case "read-only":
		s.f.Server.ReadOnly = true
	case "received":
		v.Received = set(value)
	case "removed":
		s.f.Server.DataRemoved = true
	case "role":
		v.Role = core.MemberRole(value)
	case "lost":
		for i := range v.Members {
			if strings.Contains(value, v.Members[i].Host) {
				v.Members[i].State = core.MemberUnreachable
			}
		}
	case "version":
		for i := range v.Members {
			v.Members[i].Version = value
		}
	default:
		return false
	}
	return true
}
