package plugin

import (
	"strings"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

const groupName = "aaaaaaaa-aaaa-5aaa-aaaa-aaaaaaaaaaaa"

// online is a group of three, demo-1 primary, all asked. Cases change it.
func online() *Facts {
	f := healthy()
	c := f.Cluster
	c.Spec.MySQL.SemiSync, c.Spec.Replication.Mode, c.Spec.MaxSwitchoverDelay = nil, v1alpha1.ReplicationGroup, 3600
	s := &c.Status
	s.Promotion, s.PhaseReason = nil, "demo-1 is the primary; all 3 members are online"
	s.GroupReplication = &v1alpha1.GroupReplicationStatus{GroupName: groupName, Bootstrapped: true,
		PrimaryMember: "demo-1", HasQuorum: true, ViewID: "17:5", ObservedViewMax: 3, ObservedOnlineMax: 3}
	for i, name := range s.InstanceNames {
		r := f.live(name)
		r.Server.Replication, r.Server.SemiSync, r.WritableEpoch = nil, core.SemiSync{}, 0
		r.Server.UUID = strings.Repeat(name[len(name)-1:], 8) + "-0000-0000-0000-000000000000"
		r.Server.Executed = set(groupName + ":1-1000")
		role := core.MemberSecondary
		if i == 0 {
			role, r.WritableEpoch = core.MemberPrimary, 4
		}
		s.GroupReplication.Members = append(s.GroupReplication.Members, v1alpha1.GroupMember{Instance: name,
			State: "ONLINE", Role: string(role), Reachable: true})
	}
	f.views("demo-1")
	return f
}

// views gives those who answer the view that only those named in unreachable are not
// reached.
func (f *Facts) views(primary string, unreachable ...string) {
	for _, me := range f.Cluster.Status.InstanceNames {
		r := f.live(me)
		if r == nil || r.Server == nil {
			continue
		}
		v := &core.GroupView{State: core.MemberOnline, Role: core.MemberSecondary, ViewID: "17:5"}
		for i, name := range f.Cluster.Status.InstanceNames {
			m := core.ViewMember{Host: name + ".shop.svc", UUID: string(rune('1' + i)), State: core.MemberOnline,
				Role: core.MemberSecondary}
			if name == primary {
				m.Role = core.MemberPrimary
			}
			for _, u := range unreachable {
				if u == name {
					m.State = core.MemberUnreachable
				}
			}
			if name == me {
				v.Role = m.Role
			}
			v.Members = append(v.Members, m)
		}
		r.Server.Group = v
	}
}

func (f *Facts) member(name string, state core.MemberState, reachable bool) {
	for i := range f.Cluster.Status.GroupReplication.Members {
		if m := &f.Cluster.Status.GroupReplication.Members[i]; m.Instance == name {
			m.State, m.Reachable, m.Role = string(state), reachable, ""
		}
	}
}

func (f *Facts) gone(names ...string) {
	for _, name := range names {
		f.Live[name] = Live{Problem: "no answer within 3s"}
		f.member(name, core.MemberUnknown, false)
		f.notReady(name)
	}
	f.Cluster.Status.ReadyInstances -= int32(len(names))
}

// minority: only demo-3, a secondary, is left.
func minority() *Facts {
	f := online()
	f.gone("demo-1", "demo-2")
	f.Reference = nil
	f.views("demo-1", "demo-1", "demo-2")
	f.live("demo-3").Reason, f.live("demo-3").Message = "NoQuorum",
		"has lost the majority of the group: transactions wait until it is back"
	f.phase(core.PhaseBlocked, core.GroupQuorumLost, "the group has lost its quorum (demo-1 UNKNOWN, demo-2 UNKNOWN, "+
		"demo-3 ONLINE): writes wait")
	f.Cluster.Status.GroupReplication.HasQuorum = false
	f.Cluster.Status.PrimaryFailingSince = at(time.Minute)
	return f
}

// unheard is a group of which the operator hears demo-3 alone. Nobody says that the quorum is lost.
func unheard() *Facts {
	f := online()
	f.gone("demo-1", "demo-2")
	f.Reference, f.Cluster.Status.GroupReplication.HasQuorum = nil, false
	f.phase(core.PhaseBlocked, core.GroupUnknown, "too few members answer to tell whether the group has its quorum "+
		"(demo-1 UNKNOWN, demo-2 UNKNOWN, demo-3 ONLINE): the operator changes nothing")
	return f
}

// alone: the primary is left.
func alone() *Facts {
	f := minority()
	f.Live["demo-1"] = online().Live["demo-1"]
	f.gone("demo-3")
	f.Cluster.Status.ReadyInstances = 1
	f.member("demo-1", core.MemberOnline, true)
	f.views("demo-1", "demo-2", "demo-3")
	return f
}

// nobody is online, and all answer; demo-2 holds the most.
func nobody() *Facts {
	f := online()
	f.phase(core.PhaseBlocked, core.GroupQuorumLost, "the group has lost its quorum (demo-1 OFFLINE, demo-2 OFFLINE, "+
		"demo-3 OFFLINE): writes wait. All instances are back, and none is in a group. demo-2 holds all that any of "+
		"them holds; to have it reboot the group: kubectl cnmsql group recover demo")
	f.Cluster.Status.GroupReplication.HasQuorum = false
	for _, name := range f.Cluster.Status.InstanceNames {
		f.member(name, core.MemberOffline, true)
		f.live(name).Server.Group, f.live(name).WritableEpoch = &core.GroupView{State: core.MemberOffline}, 0
		f.notReady(name)
	}
	f.live("demo-2").Server.Executed = set(groupName + ":1-1010")
	f.Cluster.Status.ReadyInstances = 0
	return f
}

// untold: the operator would reboot the group by itself, and has tried it already.
func untold() *Facts {
	f := nobody()
	f.Cluster.Spec.Replication.GroupReplication =
		&v1alpha1.GroupReplicationSpec{RecoverTotalOutage: v1alpha1.TotalOutageAutomatic}
	f.phase(core.PhaseBlocked, core.GroupQuorumLost, "the group has lost its quorum (demo-1 OFFLINE, demo-2 OFFLINE, "+
		"demo-3 OFFLINE): writes wait. The operator does not reboot the group by itself: demo-2 was told to reboot "+
		"the group, without effect: the operator does not try it a second time. Check that; then: kubectl cnmsql "+
		"group recover demo")
	return f
}

// awaited: it waits for demo-3.
func awaited() *Facts {
	f := untold()
	f.gone("demo-3")
	f.Cluster.Status.ReadyInstances = 0
	f.phase(core.PhaseBlocked, core.GroupUnknown, "too few members answer to tell whether the group has its quorum "+
		"(demo-1 OFFLINE, demo-2 OFFLINE, demo-3 UNKNOWN): the operator changes nothing. demo-1, demo-2 are back, "+
		"and in no group. The operator waits for demo-3 (no answer): it reboots the group when all instances answer, "+
		"and one holds all that the others hold. Or, if it is gone for good: kubectl cnmsql group recover demo")
	return f
}

// unobserved: the group has elected demo-2, and no operator has seen it.
func unobserved() *Facts {
	f := online()
	f.Live["demo-1"] = Live{Problem: "its Pod is Failed"}
	f.Reference = nil
	f.views("demo-2", "demo-1")
	f.live("demo-2").WritableEpoch = 4
	return f
}

func groupTrouble() *Facts {
	f := online()
	f.phase(core.PhaseDegraded, core.PrimaryHealthy, "demo-3: transactions that the group does not have; kept out of "+
		"it and of every Service")
	f.Cluster.Status.FencedInstances, f.Cluster.Status.DivergedInstances, f.Cluster.Status.ReadyInstances =
		[]string{"demo-2"}, []string{"demo-3"}, 1
	for _, name := range []string{"demo-2", "demo-3"} {
		f.member(name, core.MemberOffline, true)
		f.notReady(name)
		f.live(name).Server.Group = &core.GroupView{State: core.MemberOffline}
	}
	f.live("demo-2").State, f.live("demo-2").Message = core.Fenced,
		"it is fenced: out of the group and read-only, its mysqld runs; kubectl cnmsql fence off brings it back"
	f.live("demo-3").Reason, f.live("demo-3").Message = "Diverged", "holds transactions that the group lacks: "+uuid2+
		":1-2; it is kept out of the group and of every Service, and its data is kept"
	f.live("demo-3").Server.Executed, f.live("demo-3").Errant = set(groupName+":1-900,"+uuid2+":1-2"), set(uuid2+":1-2")
	return f
}

// forced: demo-3 went on alone, and demo-2 has come back.
func forced() *Facts {
	f := minority()
	f.phase(core.PhaseDegraded, core.PrimaryHealthy, "waiting for demo-1 (no answer), demo-2 (Joining)")
	s := &f.Cluster.Status
	s.CurrentPrimary, s.PrimaryEpoch, s.PrimaryFailingSince = "demo-3", 6, nil
	g := s.GroupReplication
	g.HasQuorum, g.PrimaryMember, g.ViewID, g.ObservedViewMax, g.LeftOut = true, "demo-3", "17:7", 1,
		[]v1alpha1.LeftOutMember{{Instance: "demo-1"}, {Instance: "demo-2", Admitted: true}}
	g.Members[2].Role = "PRIMARY"
	f.member("demo-2", core.MemberRecovering, true)
	return f
}

func unmade() *Facts {
	f := untouched()
	f.Cluster.Spec.MySQL.SemiSync, f.Cluster.Spec.Replication.Mode = nil, v1alpha1.ReplicationGroup
	f.Cluster.Status.GroupReplication = &v1alpha1.GroupReplicationStatus{GroupName: groupName}
	f.phase(core.PhaseProvisioning, core.DiagnosisNone, "waiting for demo-1 (no answer)")
	return f
}

func init() {
	for name, situation := range map[string]func() *Facts{
		"online": online, "minority": minority, "alone": alone, "nobody": nobody, "untold": untold, "awaited": awaited,
		"unobserved": unobserved, "trouble": groupTrouble, "forced": forced, "unmade": unmade,
		"unheard": unheard,
	} {
		situations["group-"+name] = situation
	}
}
