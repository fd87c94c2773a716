package whatif

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

var now = time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)

const uuid = "11111111-1111-1111-1111-111111111111"

// cluster is n healthy instances, db-1 primary with 1000 transactions, each on a
// node of its own.
func cluster(n int, mode core.DurabilityMode) *core.Observation {
	long := now.Add(-time.Hour)
	o := &core.Observation{Now: now, Cluster: core.Cluster{Name: "db", Wanted: n,
		Durability: core.Durability{Mode: mode}, PrimaryLease: true,
		Lease:  core.Known(core.Lease{Holder: "db-1", Epoch: 4, Version: "77"}, now, now),
		Routed: core.Known("db-1", now, now)}}
	acks := o.Cluster.Durability.Wished(n)
	s := &o.Cluster.Status
	*s = core.Status{Phase: core.PhaseHealthy, Diagnosis: core.PrimaryHealthy, CurrentPrimary: "db-1",
		TargetPrimary: "db-1", Epoch: 4, EstablishedAt: long,
		Promotion: &core.Promotion{Epoch: 4, Instance: "db-1", Proof: core.ProofManagerFenced, GrantedAt: long,
			WritableSince: long, PodUID: "uid-db-1", Node: "n1", RequiredAcks: acks, Size: n, Leased: true}}
	if mode == core.DurabilityQuorum && acks > 0 {
		s.Promotion.LosslessSince = 2
	}
	for i := 1; i <= n; i++ {
		name := fmt.Sprintf("db-%d", i)
		s.InstanceNames = append(s.InstanceNames, name)
		node := fmt.Sprintf("n%d", i)
		r := core.Report{Instance: name, PodUID: "uid-" + name, Node: node, State: core.Running,
			Data: core.DataPopulated, VolumeLocked: true, SeenEpoch: 4, ClusterSize: n,
			Server: &core.Server{UUID: uuid, Executed: gtid.MustParse(uuid + ":1-1000")}}
		if i == 1 {
			r.WritableEpoch = 4
			r.Server.SemiSync = core.SemiSync{SourceEnabled: acks > 0, SourceActive: acks > 0, Acks: acks,
				Clients: n - 1, Blocks: mode == core.DurabilityQuorum}
		} else {
			r.Server.SuperReadOnly = true
			r.Server.SemiSync.ReplicaEnabled = acks > 0
			r.Server.Replication = &core.Replication{SourceHost: "db-1.shop.svc", IORunning: true, SQLRunning: true}
		}
		in := core.Instance{Name: name, Ordinal: i, Pod: core.Known(core.Pod{Exists: true, UID: "uid-" + name,
			Node: node, Ready: true, Current: true, Role: "replica", Routable: true}, now, now),
			Volume: core.Known(core.Volume{Exists: true, Bound: true}, now, now),
			Node:   core.Known(core.Node{Exists: true}, now, now)}
		in.Report = core.Known(r, now, now)
		in.Latest, in.LastExecuted = in.Report, core.Known(r.Server.Executed, now, now)
		o.Instances = append(o.Instances, in)
	}
	return o
}

// says changes what an instance says of itself.
func says(o *core.Observation, name string, change func(*core.Report)) {
	in := o.Instance(name)
	r, _ := in.Report.Get()
	r = own(r)
	change(&r)
	in.Report = core.Known(r, now, now)
	in.Latest = in.Report
	if r.Server != nil {
		in.LastExecuted = core.Known(r.Server.Executed, now, now)
	}
}

func silent(o *core.Observation, name string) {
	in := o.Instance(name)
	in.Report, in.Latest, in.LastExecuted = core.Fact[core.Report]{}, core.Fact[core.Report]{}, core.Fact[gtid.Set]{}
}

func play(t *testing.T, o *core.Observation, how How, lose ...string) Answer {
	t.Helper()
	a, err := Play(*o, lose, how)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s %s %s", a.Outcome, a.Promoted, a.Proof, a.Evidence)
	t.Logf("because %s (%s): %s", a.Refusal, a.Diagnosis, a.Because)
	for _, w := range a.Waits {
		t.Logf("%6.2fs %s", w.Seconds, w.For)
	}
	if a.Losses != nil {
		t.Logf("nothing lost: %t, %s", a.Losses.Nothing, a.Losses.Because)
	}
	t.Logf("assumed: %v", a.Assumed)
	return a
}

func TestUnderQuorumALostNodeIsCutOffWithinSeconds(t *testing.T) {
	a := play(t, cluster(3, core.DurabilityQuorum), NodeLost, "db-1")
	if a.Outcome != Promoted || a.Promoted != "db-2" || a.Proof != core.ProofQuorumCut || a.Epoch != 5 {
		t.Errorf("%+v", a)
	}
	if least := core.CutAfter.Seconds(); a.Seconds < least || a.Seconds > least+1 || !a.Losses.Nothing {
		t.Errorf("%v s, %+v", a.Seconds, a.Losses)
	}
}

func TestWithoutAcknowledgementsTheLeaseHasToRunOut(t *testing.T) {
	o := cluster(3, core.DurabilityAsync)
	says(o, "db-2", func(r *core.Report) { r.Server.Executed = gtid.MustParse(uuid + ":1-990") })
	says(o, "db-3", func(r *core.Report) { r.Server.Executed = gtid.MustParse(uuid + ":1-995") })
	a := play(t, o, NodeLost, "db-1")
	if a.Outcome != Promoted || a.Promoted != "db-3" || a.Proof != core.ProofLeaseExpired {
		t.Errorf("%+v", a)
	}
	if a.Seconds < 15 || a.Seconds > 17 {
		t.Errorf("%v s", a.Seconds)
	}
	if a.Losses.Nothing || a.Losses.Transactions == nil || *a.Losses.Transactions != 5 {
		t.Errorf("%+v", a.Losses)
	}
}

func TestACrashIsKnownAtOnce(t *testing.T) {
	a := play(t, cluster(3, core.DurabilityQuorum), MysqldDown, "db-1")
	if a.Outcome != Promoted || a.Promoted != "db-2" || a.Proof != core.ProofManagerFenced || a.Seconds > 1 {
		t.Errorf("%+v", a)
	}
}

func TestADeletedPodHandsOver(t *testing.T) {
	o := cluster(3, core.DurabilityAsync)
	says(o, "db-2", func(r *core.Report) { r.Server.Executed = gtid.MustParse(uuid + ":1-900") })
	a := play(t, o, PodDeleted, "db-1")
	if a.Outcome != Promoted || a.Proof != core.ProofManagerFenced || !a.Losses.Nothing || a.Seconds > 1 {
		t.Errorf("%+v", a)
	}
}

func TestAMajorityThatIsLostBlocks(t *testing.T) {
	a := play(t, cluster(3, core.DurabilityQuorum), NodeLost, "db-1", "db-2")
	if a.Outcome != Blocked || a.Refusal == "" || a.Because == "" {
		t.Errorf("%+v", a)
	}
}

func TestAReplicaMayBeLost(t *testing.T) {
	a := play(t, cluster(3, core.DurabilityQuorum), NodeLost, "db-3")
	if a.Outcome != Continues || a.Promoted != "db-1" || a.WritesHang || a.Losses != nil {
		t.Errorf("%+v", a)
	}
}

func TestBothReplicasLostLeaveWritesHanging(t *testing.T) {
	a := play(t, cluster(3, core.DurabilityQuorum), NodeLost, "db-2", "db-3")
	if a.Outcome != Continues || !a.WritesHang {
		t.Errorf("%+v", a)
	}
}

func TestASingleInstanceIsStartedAgain(t *testing.T) {
	a := play(t, cluster(1, core.DurabilityAsync), MysqldDown, "db-1")
	if a.Outcome != Continues || a.Promoted != "db-1" || a.Seconds < 2 || a.Seconds > 3 {
		t.Errorf("%+v", a)
	}
	a = play(t, cluster(1, core.DurabilityAsync), PodDeleted, "db-1")
	if a.Outcome != Continues || a.Promoted != "db-1" {
		t.Errorf("%+v", a)
	}
	a = play(t, cluster(1, core.DurabilityAsync), NodeLost, "db-1")
	if a.Outcome != Blocked {
		t.Errorf("%+v", a)
	}
}

// Whoever may not read Pods is told by the managers, as far as these answer.
func TestNeighboursAreKnownByTheirManagersWhereNothingIsKnownOfPods(t *testing.T) {
	o := cluster(5, core.DurabilityQuorum)
	for i := range o.Instances {
		in := &o.Instances[i]
		in.Pod = core.Fact[core.Pod]{}
		switch r, _ := in.Report.Get(); in.Name {
		case "db-2":
			r.Node = "n1"
			in.Report = core.Known(r, now, now)
		case "db-3":
			in.Report = core.Fact[core.Report]{}
		}
	}
	a := play(t, o, NodeLost, "db-1")
	if strings.Join(a.Lost, " ") != "db-1 db-2" {
		t.Errorf("%+v", a)
	}
	if text := strings.Join(a.Assumed, "\n"); !strings.Contains(text, "shares the node of db-3, which is not known") ||
		strings.Contains(text, "shares the node of db-4") {
		t.Error(text)
	}
	if a = play(t, o, MysqldDown, "db-1"); strings.Contains(strings.Join(a.Assumed, "\n"), "shares the node") {
		t.Errorf("%+v", a)
	}
}

func TestThatAPodIsDeletedIsNotPlayedWhereNothingIsKnownOfIt(t *testing.T) {
	for _, o := range []*core.Observation{cluster(3, core.DurabilityQuorum), members(3)} {
		o.Instance("db-1").Pod = core.Fact[core.Pod]{}
		a, err := Play(*o, []string{"db-1"}, PodDeleted)
		if err == nil || !strings.Contains(err.Error(), "nothing is known of the Pod of db-1") {
			t.Errorf("%s: %+v, %v", o.Cluster.Topology, a, err)
		}
	}
}

func TestNeighboursAreLostWithTheirNode(t *testing.T) {
	o := cluster(3, core.DurabilityQuorum)
	in := o.Instance("db-2")
	pod, _ := in.Pod.Get()
	pod.Node = "n1"
	in.Pod = core.Known(pod, now, now)
	a := play(t, o, NodeLost, "db-1")
	if strings.Join(a.Lost, " ") != "db-1 db-2" || a.Outcome != Blocked {
		t.Errorf("%+v", a)
	}
	if a = play(t, o, MysqldDown, "db-1"); len(a.Lost) != 1 {
		t.Errorf("%+v", a)
	}
}

func TestTheUsersBoundsAreKept(t *testing.T) {
	o := cluster(3, core.DurabilityAsync)
	most := uint64(3)
	o.Cluster.Policy.MaxTransactionsBehind = &most
	for _, name := range []string{"db-2", "db-3"} {
		says(o, name, func(r *core.Report) { r.Server.Executed = gtid.MustParse(uuid + ":1-990") })
	}
	a := play(t, o, NodeLost, "db-1")
	if a.Outcome != Blocked || a.Refusal != core.RefusalBehind {
		t.Errorf("%+v", a)
	}
}

func TestTheDelayIsWaitedFor(t *testing.T) {
	o := cluster(3, core.DurabilityAsync)
	o.Cluster.FailoverDelay = 30 * time.Second
	a := play(t, o, MysqldDown, "db-1")
	if a.Outcome != Continues || a.Promoted != "db-1" {
		t.Errorf("its manager starts mysqld after 5 s, before the delay has passed: %+v", a)
	}
	if a = play(t, o, NodeLost, "db-1"); a.Outcome != Promoted || a.Seconds < 30+core.CutAfter.Seconds() ||
		!strings.Contains(fmt.Sprint(a.Waits), "spec.failoverDelay") {
		t.Errorf("%+v", a)
	}
}

func TestWhoHasDivergedByNowIsNotElected(t *testing.T) {
	o := cluster(3, core.DurabilityAsync)
	says(o, "db-2", func(r *core.Report) {
		r.Server.Executed = gtid.MustParse(uuid + ":1-1000,22222222-2222-2222-2222-222222222222:1")
	})
	if a := play(t, o, MysqldDown, "db-1"); a.Outcome != Promoted || a.Promoted != "db-3" {
		t.Errorf("%+v", a)
	}
}

func TestWhoIsSilentNowStaysSilent(t *testing.T) {
	o := cluster(3, core.DurabilityQuorum)
	silent(o, "db-3")
	a := play(t, o, NodeLost, "db-1")
	if a.Outcome != Blocked || !strings.Contains(strings.Join(a.Assumed, " "), "db-3 does not answer now") {
		t.Errorf("%+v", a)
	}
}

func TestNothingOfTheCallersObservationIsChanged(t *testing.T) {
	o := cluster(3, core.DurabilityQuorum)
	before := fmt.Sprintf("%+v", o.Cluster.Status.Promotion)
	r, _ := o.Instance("db-2").Report.Get()
	play(t, o, NodeLost, "db-1")
	after, _ := o.Instance("db-2").Report.Get()
	if fmt.Sprintf("%+v", o.Cluster.Status.Promotion) != before || !after.Server.Replication.IORunning ||
		r.Withheld != after.Withheld {
		t.Error("it was changed")
	}
}

func TestWhatCannotBeAskedIsRefused(t *testing.T) {
	o := cluster(3, core.DurabilityQuorum)
	if _, err := Play(*o, []string{"db-7"}, NodeLost); err == nil ||
		!strings.Contains(err.Error(), "it has: db-1, db-2, db-3") {
		t.Error(err)
	}
	o.Cluster.Status.Promotion = nil
	if _, err := Play(*o, []string{"db-1"}, NodeLost); err == nil || !strings.Contains(err.Error(), "no primary yet") {
		t.Error(err)
	}
}

// TestWritesThatHangForAWhileAreTold: who drains a node is to know it before, and in the end all is
// well.
func TestWritesThatHangForAWhileAreTold(t *testing.T) {
	for _, how := range []How{PodDeleted, MysqldDown} {
		if a := play(t, cluster(3, core.DurabilityQuorum), how, "db-2", "db-3"); a.Outcome != Continues ||
			a.WritesHang || a.WritesHung < 1 || a.WritesHung > 60 {
			t.Errorf("%s of both: %s, hangs %t, for %.1f s", how, a.Outcome, a.WritesHang, a.WritesHung)
		}
		if a := play(t, cluster(3, core.DurabilityQuorum), how, "db-2"); a.WritesHung != 0 {
			t.Errorf("%s of one: for %.1f s", how, a.WritesHung)
		}
		if a := play(t, cluster(3, core.DurabilityAsync), how, "db-2", "db-3"); a.WritesHung != 0 {
			t.Errorf("%s where nothing is waited for: for %.1f s", how, a.WritesHung)
		}
	}
}
