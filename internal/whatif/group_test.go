package whatif

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// members is a group of n, db-1 primary, of which the last has the lowest server_uuid.
func members(n int) *core.Observation {
	o := cluster(n, core.DurabilityAsync)
	o.Cluster.Topology = core.TopologyGroup
	o.Cluster.Group, o.Cluster.SwitchoverLimit = &core.Group{WishedName: uuid}, time.Hour
	s := &o.Cluster.Status
	s.Promotion, s.Group = nil, &core.GroupStatus{Name: uuid, Bootstrapped: true, Primary: "db-1", HasQuorum: true,
		ViewID: "1:1", ViewMax: n, OnlineMax: n}
	var view []core.ViewMember
	for i := 1; i <= n; i++ {
		m := core.ViewMember{Host: fmt.Sprintf("db-%d.shop.svc", i), UUID: uuidFor(n, i), State: core.MemberOnline,
			Role: core.MemberSecondary}
		if i == 1 {
			m.Role = core.MemberPrimary
		}
		view = append(view, m)
	}
	for i := 1; i <= n; i++ {
		says(o, fmt.Sprintf("db-%d", i), func(r *core.Report) {
			r.Version, r.WritableEpoch = "9.7.0", 0
			r.Server = &core.Server{UUID: uuidFor(n, i), Executed: gtid.MustParse(uuid + ":1-1000"),
				Group: &core.GroupView{State: core.MemberOnline, Role: view[i-1].Role, ViewID: "1:1", Members: view}}
		})
	}
	return o
}

func uuidFor(n, i int) string { return fmt.Sprintf("%08d-0000-0000-0000-000000000000", n+1-i) }

func (a Answer) onlineNow() string { return strings.Join(a.Group.Online, " ") }

func TestAGroupElectsTheLowestUUIDAfterTheSilenceOfItsPrimary(t *testing.T) {
	a := play(t, members(3), NodeLost, "db-1")
	if a.Outcome != Promoted || a.Promoted != "db-3" || a.Epoch != 5 || !a.Losses.Nothing {
		t.Errorf("%+v", a)
	}
	if a.Seconds < 5 || a.Seconds > 5.2 || !a.Group.Quorum || a.onlineNow() != "db-2 db-3" || a.Group.Majority != 2 {
		t.Errorf("%v s, %+v", a.Seconds, a.Group)
	}
}

func TestAGroupElectsAmongTheLowestVersion(t *testing.T) {
	o := members(5)
	for _, name := range []string{"db-4", "db-5"} {
		says(o, name, func(r *core.Report) { r.Version = "9.10.0" })
	}
	if a := play(t, o, MysqldDown, "db-1"); a.Promoted != "db-3" || !strings.Contains(strings.Join(a.Assumed, " "),
		"different versions") {
		t.Errorf("%+v", a)
	}
}

// TestAGroupCountsItsMajorityOfThoseWhoHaveASay holds that whom it went on without does not count, as in its status.
func TestAGroupCountsItsMajorityOfThoseWhoHaveASay(t *testing.T) {
	o := members(5)
	view := o.Instances[0].Report
	r, _ := view.Get()
	left := r.Server.Group.Members[:3]
	for i := range o.Instances {
		name := o.Instances[i].Name
		says(o, name, func(r *core.Report) {
			if i < 3 {
				r.Server.Group.Members = left
				return
			}
			r.Server.Group = &core.GroupView{State: core.MemberOffline}
		})
	}
	o.Cluster.Status.Group.ViewMax = 3
	o.Cluster.Status.Group.LeftOut = []core.LeftOut{{Instance: "db-4"}, {Instance: "db-5", Admitted: true}}
	if a := play(t, o, NodeLost, "db-3"); a.Group.Size != 3 || a.Group.Majority != 2 || !a.Group.Quorum {
		t.Errorf("%+v", a.Group)
	}
}

func TestAGroupWaitsForAsLongAsItWasTold(t *testing.T) {
	o := members(3)
	o.Cluster.Group.ExpelTimeout = 20 * time.Second
	a := play(t, o, NodeLost, "db-1")
	if a.Outcome != Promoted || a.Seconds < 25 || a.Seconds > 25.2 || !strings.Contains(fmt.Sprint(a.Waits),
		"memberExpelTimeoutSeconds") {
		t.Errorf("%+v", a)
	}
}

func TestAGroupHandsOverWhenThePodOfItsPrimaryIsDeleted(t *testing.T) {
	a := play(t, members(3), PodDeleted, "db-1")
	if a.Outcome != Promoted || a.Promoted != "db-2" || a.Seconds > 1.1 || !a.Losses.Nothing {
		t.Errorf("the operator asks for the first that can be: %+v", a)
	}
}

func TestAGroupHandsOverToNobodyWhoIsNewerThanAnother(t *testing.T) {
	o := members(3)
	says(o, "db-2", func(r *core.Report) { r.Version = "9.10.0" })
	if a := play(t, o, PodDeleted, "db-1"); a.Promoted != "db-3" {
		t.Errorf("a group makes nobody primary who is newer than another member: %+v", a)
	}
}

func TestAGroupGoesOnWithoutAMinority(t *testing.T) {
	for how, seconds := range map[How]float64{NodeLost: 5, MysqldDown: 5, PodDeleted: 0} {
		a := play(t, members(5), how, "db-3", "db-4")
		if a.Outcome != Continues || a.Promoted != "db-1" || !a.Group.Quorum || a.Losses != nil || a.Seconds < seconds {
			t.Errorf("%s: %+v %+v", how, a, a.Group)
		}
	}
}

func TestSecondariesThatWereRestartedComeBack(t *testing.T) {
	if a := play(t, members(3), PodDeleted, "db-2"); a.onlineNow() != "db-1 db-2 db-3" {
		t.Errorf("%+v", a.Group)
	}
	if a := play(t, members(3), MysqldDown, "db-2"); a.onlineNow() != "db-1 db-2 db-3" {
		t.Errorf("%+v", a.Group)
	}
}

func TestAMemberThatDoesNotAnswerComesBackWithNothingThatIsKnown(t *testing.T) {
	o := members(3)
	says(o, "db-2", func(r *core.Report) { r.State, r.Server = core.Hung, nil })
	a := play(t, o, PodDeleted, "db-2")
	if a.Outcome != Continues || a.Promoted != "db-1" || a.onlineNow() != "db-1 db-3" {
		t.Errorf("%+v %+v", a, a.Group)
	}
}

func TestAMajorityThatIsLostStopsTheWritesAndIsForcedWithASecondary(t *testing.T) {
	a := play(t, members(3), NodeLost, "db-1", "db-2")
	if a.Outcome != Blocked || a.Diagnosis != core.GroupQuorumLost || a.Refusal != core.RefusalQuorumLost ||
		a.Group.Quorum || a.onlineNow() != "db-3" {
		t.Errorf("%+v %+v", a, a.Group)
	}
	r := a.Group.Recovery
	if r == nil || r.Lead != "db-3" || r.Anew || !slices.Equal(r.Members, []string{"db-3"}) ||
		!slices.Equal(r.LeftOut, []string{"db-1", "db-2"}) {
		t.Errorf("%+v", r)
	}
}

func TestAPrimaryWithoutItsMajorityKeepsItsRoleAndHangs(t *testing.T) {
	a := play(t, members(3), MysqldDown, "db-2", "db-3")
	if a.Outcome != Blocked || a.Group.Quorum || a.Group.Recovery.Lead != "db-1" || a.onlineNow() != "db-1" {
		t.Errorf("%+v %+v", a, a.Group)
	}
}

func TestATotalOutageNeedsEverybodyAndTheMostAdvanced(t *testing.T) {
	o := members(3)
	says(o, "db-2", func(r *core.Report) { r.Server.Executed = gtid.MustParse(uuid + ":1-1001") })
	a := play(t, o, MysqldDown, "db-1", "db-2", "db-3")
	if a.Outcome != Blocked || a.Group.Recovery == nil || !a.Group.Recovery.Anew || a.Group.Recovery.Lead != "db-2" ||
		a.onlineNow() != "" {
		t.Errorf("%+v %+v", a, a.Group.Recovery)
	}
	a = play(t, members(3), NodeLost, "db-1", "db-2", "db-3")
	if a.Outcome != Blocked || a.Group.Recovery.Refusal != core.RefusalMembersUnknown {
		t.Errorf("%+v %+v", a, a.Group.Recovery)
	}
}

func TestATotalOutageIsOverByItselfWhereTheUserWishesIt(t *testing.T) {
	o := members(3)
	o.Cluster.Group.RecoverOutage = true
	says(o, "db-2", func(r *core.Report) { r.Server.Executed = gtid.MustParse(uuid + ":1-1001") })
	a := play(t, o, MysqldDown, "db-1", "db-2", "db-3")
	if a.Outcome != Promoted || a.Promoted != "db-2" || !a.Group.Quorum || a.Group.Recovery != nil ||
		!strings.Contains(a.Losses.Because, "all instances are known") {
		t.Errorf("%+v %+v", a, a.Group)
	}
	o = members(3)
	o.Cluster.Group.RecoverOutage = true
	if a := play(t, o, MysqldDown, "db-1", "db-2", "db-3"); a.Outcome != Continues ||
		a.onlineNow() != "db-1 db-2 db-3" {
		t.Errorf("%+v %+v", a, a.Group)
	}
	if a := play(t, o, NodeLost, "db-1", "db-2", "db-3"); a.Outcome != Blocked || a.Diagnosis != core.GroupUnknown {
		t.Errorf("%+v %+v", a, a.Group)
	}
}

func TestASingleMemberThatEndsIsATotalOutage(t *testing.T) {
	for _, how := range []How{MysqldDown, PodDeleted} {
		a := play(t, members(1), how, "db-1")
		if a.Outcome != Blocked || a.Group.Quorum || !a.Group.Recovery.Anew || a.Group.Recovery.Lead != "db-1" {
			t.Errorf("%s: %+v %+v", how, a, a.Group)
		}
	}
}

func TestAMemberThatIsSilentNowIsTakenForGone(t *testing.T) {
	o := members(5)
	silent(o, "db-5")
	a := play(t, o, NodeLost, "db-1", "db-2")
	if a.Outcome != Blocked || a.onlineNow() != "db-3 db-4" || !strings.Contains(strings.Join(a.Assumed, " "),
		"db-5 does not answer now, and is treated as gone") {
		t.Errorf("%+v %+v", a, a.Group)
	}
}

func TestAGroupThatIsNotSeenOrNotMadeIsNotPlayed(t *testing.T) {
	o := members(3)
	silent(o, "db-2")
	silent(o, "db-3")
	if _, err := Play(*o, []string{"db-1"}, NodeLost); err == nil ||
		!strings.Contains(err.Error(), "no majority of the group of cluster db is seen as it is") {
		t.Error(err)
	}
	o = members(3)
	o.Cluster.Status.Group.Bootstrapped = false
	for i := range o.Instances {
		says(o, o.Instances[i].Name,
			func(r *core.Report) { r.Server.Group = &core.GroupView{State: core.MemberOffline} })
	}
	if _, err := Play(*o, []string{"db-1"}, NodeLost); err == nil || !strings.Contains(err.Error(), "not made yet") {
		t.Error(err)
	}
	if _, err := Play(*members(3), []string{"db-7"}, NodeLost); err == nil ||
		!strings.Contains(err.Error(), "it has: db-1, db-2, db-3") {
		t.Error(err)
	}
}

func TestNothingOfAGroupsObservationIsChanged(t *testing.T) {
	o := members(3)
	before := fmt.Sprintf("%+v %+v", o.Cluster.Status.Group, o.Instance("db-2").Report)
	view := *func() *core.GroupView { r, _ := o.Instance("db-2").Report.Get(); return r.Server.Group }()
	play(t, o, NodeLost, "db-1")
	r, _ := o.Instance("db-2").Report.Get()
	if fmt.Sprintf("%+v %+v", o.Cluster.Status.Group, o.Instance("db-2").Report) != before ||
		r.Server.Group.ViewID != view.ViewID || r.Server.Group.Members[0].State != core.MemberOnline {
		t.Error("it was changed")
	}
}

func TestTheRecoveryIsTheOperatorsOwnDecision(t *testing.T) {
	o := members(3)
	if r := Recover(*o); r.Refusal != core.RefusalQuorumPresent || o.Cluster.Group.ForceQuorum {
		t.Errorf("%+v", r)
	}
	said := Recover(*o)
	o.Cluster.Status.Reason = said.Because
	if again := Recover(*o); again.Refusal != said.Refusal || again.Because != said.Because {
		t.Errorf("asked once more, it says %+v", again)
	}
}

// TestDeletionsOfSeveralMembersAreToldToComeAtOnce: with kubectl they do not, and the primary may
// be made of one that goes, too.
func TestARebootTellsWhatNobodyHoldsAnyMore(t *testing.T) {
	o := members(3)
	for _, name := range []string{"db-1", "db-2", "db-3"} {
		says(o, name, func(r *core.Report) { r.Server.Group = &core.GroupView{State: core.MemberOffline} })
	}
	if r := Recover(*o); !r.Anew || r.Gap != "" {
		t.Errorf("nothing is missing: %+v", r)
	}
	o.Cluster.Status.Group.Recorded = gtid.MustParse(uuid + ":1-1003")
	if r := Recover(*o); !r.Anew || !strings.Contains(r.Gap, "seen before ("+uuid+":1001-1003)") {
		t.Errorf("three are missing: %+v", r)
	}
}

func TestDeletionsOfSeveralMembersAreToldToComeAtOnce(t *testing.T) {
	told := func(how How, lose ...string) bool {
		return strings.Contains(strings.Join(play(t, members(3), how, lose...).Assumed, "; "), "one after the other")
	}
	if !told(PodDeleted, "db-1", "db-2") {
		t.Error("the primary and another go, and nothing is said of their order")
	}
	if told(PodDeleted, "db-1") || told(PodDeleted, "db-2", "db-3") || told(NodeLost, "db-1", "db-2") {
		t.Error("it is said where it does not matter")
	}
}
