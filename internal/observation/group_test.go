package observation_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/observation"
)

const mine = "11111111-1111-1111-1111-111111111111"

// aGroup has gone on with c-1 and c-2; of those that it went on without, c-4 may come back.
func aGroup() *v1alpha1.Cluster {
	c := aCluster()
	c.UID = "0c9dbd0e-55e5-4ad0-a8f5-29a1e7f8a9a1"
	c.Spec.Replication.Mode = v1alpha1.ReplicationGroup
	c.Status.Promotion = nil
	c.Status.GroupReplication = &v1alpha1.GroupReplicationStatus{GroupName: "7f1a6d0e-0000-5000-8000-000000000001",
		Bootstrapper: "c-1", Bootstrapped: true, PrimaryMember: "c-1", HasQuorum: true,
		ViewID: "17:4", ObservedViewMax: 5, ObservedOnlineMax: 4,
		TotalOutageTried: "c-2", NewInstances: []string{"c-5"},
		LeftOut: []v1alpha1.LeftOutMember{{Instance: "c-3", Held: mine + ":1-9"}, {Instance: "c-4", Held: mine + ":1-7",
			HeldTogether: mine + ":1-8", Admitted: true}, {Instance: "c-5"}},
		Recoveries: []v1alpha1.GroupRecovery{{Epoch: 4, Held: mine + ":1-7"},
			{Epoch: 6, Held: mine + ":1-9", Pending: true}},
		Members: []v1alpha1.GroupMember{
			{Instance: "c-1", State: "ONLINE", Role: "PRIMARY", Address: "10.0.0.1", Reachable: true,
				Leaving: true},
			{Instance: "c-2", State: "RECOVERING", Role: "SECONDARY", Address: "10.0.0.2", Reachable: true},
			{Instance: "c-3", State: "UNREACHABLE", Role: "SECONDARY"},
			{Instance: "c-4", State: "ERROR", Address: "10.0.0.4", Reachable: true},
			{Instance: "c-5", State: "UNKNOWN"}}}
	return c
}

// The fields of the status of a group, by their names: one that is new must be in aGroup.
func TestTheGroupThatIsReadAndWrittenHasEveryField(t *testing.T) {
	g := aGroup().Status.GroupReplication
	for _, whole := range []any{*g, g.Members[0], g.LeftOut[1], g.Recoveries[1]} {
		for v, i := reflect.ValueOf(whole), 0; i < v.NumField(); i++ {
			if v.Field(i).IsZero() {
				t.Errorf("%s.%s is empty in it", v.Type().Name(), v.Type().Field(i).Name)
			}
		}
	}
}

func TestWhatIsKnownOfAGroupIsWhatItsStatusSays(t *testing.T) {
	s, err := observation.StatusFrom(&aGroup().Status)
	if err != nil {
		t.Fatal(err)
	}
	g := s.Group
	if g.ViewMax != 5 || g.OnlineMax != 4 || g.Primary != "c-1" || !g.Bootstrapped ||
		!g.HasQuorum || g.ViewID != "17:4" {
		t.Errorf("%+v", g)
	}
	if want := (core.GroupMember{Instance: "c-2", State: core.MemberRecovering, Role: core.MemberSecondary,
		Address: "10.0.0.2", Reachable: true}); g.Members[1] != want {
		t.Errorf("c-2 is %+v", g.Members[1])
	}
	if !g.Excludes("c-3") || g.Excludes("c-4") || !g.WentOnWithout("c-4") || g.WentOnWithout("c-1") {
		t.Errorf("left out: %+v", g.LeftOut)
	}
	beyond := gtid.MustParse(mine + ":10")
	if l, _ := g.LeftOutOf("c-3"); !l.Excess(&core.Server{Executed: l.Held.Union(beyond)}).Equal(beyond) {
		t.Errorf("c-3 was left out from %s", l.Held)
	}
}

// Who was left out must never be taken for one who holds nothing beyond nothing.
func TestAPositionThatCannotBeReadIsAnError(t *testing.T) {
	c := aGroup()
	c.Status.GroupReplication.LeftOut[1].Held = "x"
	if _, err := observation.StatusFrom(&c.Status); err == nil || !strings.Contains(err.Error(), "leftOut[c-4].held") {
		t.Errorf("said is %v", err)
	}
	c = aGroup()
	c.Status.GroupReplication.Recoveries[1].Held = "x"
	if _, err := observation.StatusFrom(&c.Status); err == nil || !strings.Contains(err.Error(), "recoveries[6].held") {
		t.Errorf("said is %v", err)
	}
}

func TestTheNameOfAGroup(t *testing.T) {
	c := aGroup()
	derived := observation.GroupWish(c).WishedName
	if _, err := uuid.Parse(derived); err != nil || derived != observation.GroupWish(c.DeepCopy()).WishedName {
		t.Fatalf("it is %q: %v", derived, err)
	}
	// or a Cluster whose status is lost would have its group renamed by another release
	if derived != "e11ec95a-055a-5e66-b0b4-f23ee487d02c" {
		t.Errorf("the same Cluster had another name before: it is %s", derived)
	}
	c.Spec.Replication.GroupReplication = &v1alpha1.GroupReplicationSpec{Consistency: "AFTER"}
	if got := observation.GroupWish(c).WishedName; got != derived {
		t.Errorf("with other fields, it is %s", got)
	}
	other := c.DeepCopy()
	other.UID = "1c9dbd0e-55e5-4ad0-a8f5-29a1e7f8a9a1"
	if got := observation.GroupWish(other).WishedName; got == derived {
		t.Error("a Cluster that was recreated under the same name has the name of the former one's group")
	}
	c.Spec.Replication.GroupReplication.GroupName = "aaaaaaaa-0000-4000-8000-000000000001"
	if got := observation.GroupWish(c).WishedName; got != "aaaaaaaa-0000-4000-8000-000000000001" {
		t.Errorf("chosen by the user, and it is %s", got)
	}
	c.Spec.Bootstrap = &v1alpha1.BootstrapSpec{Recovery: &v1alpha1.RecoverySpec{}}
	got := observation.GroupWish(c)
	if got.WishedName != derived || got.NotTaken != "aaaaaaaa-0000-4000-8000-000000000001" {
		t.Errorf("restored, with the name of the group that the data are of, it is %s, and not %s", got.WishedName,
			got.NotTaken)
	}
}

func TestWhatAGroupIsAskedFor(t *testing.T) {
	if got := observation.GroupWish(aCluster()); got != nil {
		t.Errorf("of an asynchronous cluster, it is %+v", got)
	}
	c := aGroup()
	if got := observation.GroupWish(c); got.ForceQuorum || got.RecoverOutage || got.ExpelTimeout != 0 {
		t.Errorf("where nothing is said, it is %+v", got)
	}
	c.Annotations = map[string]string{v1alpha1.AnnotationForceQuorum: "true"}
	c.Spec.Replication.GroupReplication = &v1alpha1.GroupReplicationSpec{MemberExpelTimeoutSeconds: new(int32(7)),
		RecoverTotalOutage: v1alpha1.TotalOutageAutomatic}
	if got := observation.GroupWish(c); !got.ForceQuorum || !got.RecoverOutage || got.ExpelTimeout != 7*time.Second {
		t.Errorf("it is %+v", got)
	}
	c.Spec.Replication.GroupReplication.RecoverTotalOutage = v1alpha1.TotalOutageManual
	if observation.GroupWish(c).RecoverOutage {
		t.Error("the operator would not wait for a human's word")
	}
	c.Annotations[v1alpha1.AnnotationForceQuorum] = "2026-11-23T14:00:00Z@17:5"
	if got := observation.GroupWish(c); !got.ForceQuorum || got.ForceView != "17:5" {
		t.Errorf("of a word in a view, it is %+v", got)
	}
	for _, no := range []string{"false", "off"} {
		c.Annotations[v1alpha1.AnnotationForceQuorum] = no
		if observation.GroupWish(c).ForceQuorum {
			t.Errorf("%q forces the quorum", no)
		}
	}
}

// TestWhatSaysNothingInAGroupIsNamed: it is accepted, for manifests have it, and not ignored
// in silence.
func TestWhatSaysNothingInAGroupIsNamed(t *testing.T) {
	c := aGroup()
	c.Spec.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{DataDurability: v1alpha1.DurabilityRequired}
	c.Spec.FailoverPolicy = &v1alpha1.FailoverPolicy{}
	c.Spec.MinSyncReplicas, c.Spec.MaxSyncReplicas = new(int32(0)), new(int32(0))
	if got := observation.GroupWish(c).WithoutEffect; len(got) > 0 {
		t.Errorf("where nothing is wished, it is %q", got)
	}
	c.Spec.MySQL.SemiSync.Enabled = true
	c.Spec.FailoverDelay = 30
	c.Spec.FailoverPolicy.PreferredPrimary = []string{"db-1"}
	c.Spec.MinSyncReplicas, c.Spec.MaxSyncReplicas = new(int32(1)), new(int32(2))
	want := []string{"spec.failoverDelay", "spec.failoverPolicy", "spec.mysql.semiSync", "spec.minSyncReplicas",
		"spec.maxSyncReplicas"}
	if got := observation.GroupWish(c).WithoutEffect; !slices.Equal(got, want) {
		t.Errorf("it is %q", got)
	}
	if got := observation.Durability(&c.Spec); got != (core.Durability{Mode: core.DurabilityAsync}) {
		t.Errorf("its commits would wait for replicas: %+v", got)
	}
	c.Spec.Replication.Mode = v1alpha1.ReplicationAsync
	if got := observation.Durability(&c.Spec); got.Mode != core.DurabilityRequired || got.Min != 1 || got.Max != 2 {
		t.Errorf("those of an asynchronous cluster do not: %+v", got)
	}
}

func TestWhatWasRecordedOfAGroupLeavesOutWhatCannotBeReadAndWhatWasNeverTheGroups(t *testing.T) {
	c := aGroup()
	c.Status.DivergedInstances = []string{"c-4"}
	c.Status.GroupReplication.LeftOut = []v1alpha1.LeftOutMember{{Instance: "c-5", Admitted: true}}
	c.Status.GTIDExecutedByInstance = map[string]string{"c-1": mine + ":1-7", "c-2": mine + ":1-9", "c-3": mine +
		":1-3:… (12 more)", "c-4": mine + ":1-20", "c-5": mine + ":1-30"}
	s, err := observation.StatusFrom(&c.Status)
	if err != nil || s.Group.Recorded.String() != mine+":1-9" {
		t.Errorf("%s, %v", s.Group.Recorded, err)
	}
}
