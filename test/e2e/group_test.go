//go:build e2e

package e2e

import (
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
)

const groupSpec = `
  instances: 3
  storage: {size: 1Gi}
  maxSwitchoverDelay: 60
  replication: {mode: groupReplication, groupReplication: {recoverTotalOutage: Manual}}
  mysql: {parameters: {max_connections: "200"}}
` + additionalServices

// groupOutage is how long writes may be refused when a group has to find out by itself
// that its primary is gone: it takes the group five seconds.
const groupOutage = 12 * time.Second

// TestGroup: a Cluster whose members elect their primary lives through what befalls every cluster,
// and loses its quorum and all of its members. They are on three nodes, each with a Pod subnet of
// its own. No acknowledged write is lost.
func TestGroup(t *testing.T) {
	newStory(t, "group", applies(groupSpec)).play([]step{
		{"ThreeMembersBecomeReady", (*world).provisionGroup, always, nothing},
		{"WritesReachSecondaries", (*world).writesReachReplicas, always, three},
		{"ServicesRouteByRole", (*world).servicesRouteByRole, always, three},
		{"SteadyStateWritesNothing", (*world).steadyStateWritesNothing, inAll, three},
		{"AdditionalServicesRouteByRole", (*world).additionalServicesRouteByRole, inAll, three},
		{"LaggingMemberTakesNoReads", (*world).laggingMemberTakesNoReads, inAll, three},
		{"StatusMirrorsTheGroup", (*world).statusMirrorsTheGroup, always, three},
		{"InstancesMayWriteNoStatus", (*world).membersMayWriteNoStatus, inAll, three},
		{"StrangersMayNotSpeakWithMembers", (*world).strangersAreRefused, inAll, three},
		{"SwitchoverUnderWrites", (*world).switchoverUnderWrites, always, three},
		{"SwitchoverToNobodyIsRefused", (*world).switchoverToNobodyIsRefused, inAll, three},
		{"ElectionByHandIsMirroredAtOnce", (*world).electionByHand, inAll, three},
		{"MysqldOfPrimaryKilled", (*world).groupPrimaryKilled, always, three},
		{"MysqldOfPrimaryHangs", (*world).groupPrimaryHangs, inAll, three},
		{"MysqldOfSecondaryKilled", (*world).mysqldOfReplicaKilled, inAll, three},
		{"PrimaryPodDeleted", (*world).groupPrimaryPodDeleted, inAll, three},
		{"PrimaryPodForceDeleted", (*world).groupPrimaryForceDeleted, inAll, three},
		{"FencedUnlessTheQuorumWouldBeLost", (*world).fencedUnlessQuorumLost, inAll, three},
		{"OperatorKilledDuringSwitchover", (*world).operatorKilledDuringSwitchover, inAll, three},
		{"OperatorKilledDuringFailover", (*world).operatorKilledDuringFailover, inAll, three},
		{"OperatorKilledWhilePodIsDeleted", (*world).operatorKilledWhilePodIsDeleted, inAll, three},
		{"PrimaryNodePartitioned", (*world).groupPrimaryPartitioned, always, three},
		{"SecondaryNodePartitioned", (*world).groupSecondaryPartitioned, inAll, three},
		{"RolledOutUnderWrites", (*world).groupRolledOut, inAll, threeForItself},
		{"ManagersReplacedInPlace", (*world).managersReplacedInPlace, inAll, three},
		{"CertificateAuthorityDeleted", (*world).authorityDeleted, inAll, threeForItself},
		{"QuorumLostAndForced", (*world).quorumLostAndForced, inAll, three},
		{"GroupLostAndMadeAnew", (*world).groupLostAndMadeAnew, inAll, three},
		{"GroupLostAndMadeAnewByItself", (*world).groupMadeAnewByItself, always, three},
		{"ScaledToFive", func(w *world) { w.scaledTo(5) }, inAll, three},
		{"MysqldOfPrimaryOfFiveKilled", (*world).groupPrimaryKilled, inAll, five},
		{"TwoOfFivePartitioned", (*world).twoOfFiveLost, inAll, five},
		{"MajorityOfFiveCutOff", (*world).majorityCutOff, inAll, five},
		{"ScaledToThreeAndOne", func(w *world) { w.scaledTo(3, 1) }, inAll, five},
		{"DeletedGroupLeavesItsVolumesForAnother", func(w *world) { w.leavesItsVolumes(groupSpec) }, inAll,
			threeForItself},
		{"DeletedClusterLeavesNothing", (*world).deletedClusterLeavesNothing, always, anyForItself},
	})
}

// laggingMemberTakesNoReads: the bound is set while the group runs, and goes again.
func (w *world) laggingMemberTakesNoReads() {
	bound := func(routing string) {
		w.kubectl("-n", w.key.Namespace, "patch", "cluster", w.key.Name, "--type=merge", "-p",
			`{"spec":{"readRouting":`+routing+`}}`)
	}
	bound(`{"maxReplicationLag":"3s"}`)
	w.laggingReplicaTakesNoReads()
	bound("null")
}

// groupPrimaryPodDeleted: whoever comes back looks for nobody who is gone. Each attempt
// would take a second, and the group wait for it.
func (w *world) groupPrimaryPodDeleted() {
	name := w.primary()
	w.primaryPodDeleted()
	log := w.kubectl("-n", w.key.Namespace, "logs", name, "-c", "mysql")
	if n := strings.Count(log, "waiting for a connection via poll"); n > 0 ||
		!strings.Contains(log, "declared online") {
		w.t.Errorf("%s came back, and tried %d times to connect to an address where nobody is", name, n)
	}
}

// operatorKilledWhilePodIsDeleted: nobody relieves the primary in time; it leaves, and the
// group elects another.
func (w *world) operatorKilledWhilePodIsDeleted() {
	old := w.pod(w.primary())
	l := w.startWriting()
	w.killOperator()
	w.deletePod(old.Name)
	w.replaced(old, time.Minute)
	l.ackedAfter(time.Now(), time.Minute)
	l.stopAndLoseNothing()
	w.healthy(2 * time.Minute) // who recovers may not get through with what is written at full speed
}

// provisionGroup: the operator is killed once the group is made.
func (w *world) provisionGroup() {
	begun := time.Now()
	w.apply(groupSpec)
	w.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.GroupReplication != nil && c.Status.GroupReplication.Bootstrapped
	})
	w.killLeader()
	w.healthy(4 * time.Minute)
	w.t.Logf("apply to three members online: %s", time.Since(begun))
}

func (w *world) statusMirrorsTheGroup() {
	c := w.cluster()
	g := c.Status.GroupReplication
	if g == nil || !g.Bootstrapped || !g.HasQuorum || g.ViewID == "" || len(g.Members) != 3 || g.ObservedViewMax != 3 ||
		g.PrimaryMember != c.Status.CurrentPrimary {
		w.t.Fatalf("status.groupReplication is %+v", g)
	}
	roles := map[string]int{}
	for _, m := range g.Members {
		roles[m.State+" "+m.Role]++
	}
	if roles["ONLINE PRIMARY"] != 1 || roles["ONLINE SECONDARY"] != 2 {
		w.t.Errorf("the members are %+v", g.Members)
	}
	if w.pod(c.Status.CurrentPrimary).Annotations[v1alpha1.AnnotationGroupObserved] == "" {
		w.t.Error("the primary's manager did not ring the doorbell")
	}
	if c.Status.Promotion != nil {
		w.t.Error("there is a promotion, although the group elects")
	}
}

// electionByHand: what changes in a group is told by its members. Whoever looks every
// five seconds only would hardly be so quick three times.
func (w *world) electionByHand() {
	for range 3 {
		to, bystander := w.replicas()[0], w.replicas()[1] // the sessions of who changes its role are ended
		uuid := strings.TrimSpace(w.asRoot(to, "SELECT @@server_uuid"))
		w.asRoot(bystander, "DO group_replication_set_as_primary('"+uuid+"')")
		elected := time.Now()
		w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
			return c.Status.CurrentPrimary == to && c.Status.TargetPrimary == to
		})
		took := time.Since(elected)
		w.t.Logf("%s was made primary by hand; the status says so %s later", to, took)
		if took > 1500*time.Millisecond {
			w.t.Errorf("the status says so %s later: by looking, and not because it was told", took)
		}
	}
	w.healthy(time.Minute)
}

// membersMayWriteNoStatus: neither by their rights nor by the policy behind them.
func (w *world) membersMayWriteNoStatus() {
	name := w.primary()
	can := func(verb, what string) string {
		out, _ := bed.Kubectl(w.ctx, nil, "auth", "can-i", verb, what, "--as=system:serviceaccount:"+w.key.Namespace+
			":"+name, "-n", w.key.Namespace)
		return strings.TrimSpace(out)
	}
	if got := can("patch", "clusters.mysql.cnmsql.co/"+w.key.Name+" --subresource=status"); got == "yes" {
		w.t.Error("a member may patch the status of its Cluster")
	}
	if got := can("patch", "pods/"+name); got != "yes" {
		w.t.Errorf("a member may not ring the doorbell on its own Pod: %s", got)
	}
	if got := can("patch", "pods/"+w.replica()); got == "yes" {
		w.t.Error("a member may patch the Pod of another")
	}
	if _, err := bed.Kubectl(w.ctx, nil, "-n", w.key.Namespace, "patch", "cluster", w.key.Name,
		"--subresource=status", "--type=merge",
		"-p", `{"status":{"groupReplication":{"bootstrapped":false}}}`); err == nil ||
		!strings.Contains(err.Error(), "two groups") {
		w.t.Errorf("bootstrapped could be taken back: %v", err)
	}
}

// strangersAreRefused: this machine is no member, and members hang up on it, while
// their other ports answer.
func (w *world) strangersAreRefused() {
	for _, name := range w.cluster().Status.InstanceNames {
		ip := w.pod(name).Status.PodIP
		dialer := &net.Dialer{Timeout: 3 * time.Second}
		conn, err := tls.DialWithDialer(dialer, "tcp", net.JoinHostPort(ip, "33061"),
			&tls.Config{InsecureSkipVerify: true})
		if err == nil {
			_ = conn.Close()
			w.t.Errorf("%s speaks the group's protocol with a stranger", name)
		}
		plain, err := dialer.Dial("tcp", net.JoinHostPort(ip, "3306"))
		if err != nil {
			w.t.Fatalf("%s cannot be reached at all: %v", name, err)
		}
		_ = plain.Close()
	}
}

// elected waits until the group has elected another than old, and all is well again
// without the role going back.
func (w *world) elected(old string) {
	w.t.Helper()
	c := w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary != old && c.Status.GroupReplication.HasQuorum
	})
	next := c.Status.CurrentPrimary
	w.healthy(3 * time.Minute)
	if now := w.primary(); now != next {
		w.t.Errorf("%s was elected, and then %s took over without need", next, now)
	}
}

func (w *world) groupPrimaryKilled() {
	old := w.primary()
	l := w.startWriting()
	at := w.killMysqld(old)
	outage := l.outageSince(at, time.Minute)
	w.t.Logf("writable again %s after kill -9", outage)
	if outage > groupOutage {
		w.t.Errorf("writable again %s after kill -9; at most %s is wanted", outage, groupOutage)
	}
	w.elected(old)
	w.eventSays("FailoverObserved")
	l.stopAndLoseNothing()
}

func (w *world) groupPrimaryForceDeleted() {
	old := w.pod(w.primary())
	l := w.startWriting()
	w.deletePod(old.Name, client.GracePeriodSeconds(0))
	w.replaced(old, time.Minute)
	w.elected(old.Name)
	report := l.stopAndLoseNothing()
	if gap := report.LongestGap.Duration(); gap > groupOutage {
		w.t.Errorf("nothing could be written for %s; at most %s is wanted", gap, groupOutage)
	}
}

func (w *world) fence(instance, value string) {
	w.kubectl("-n", w.key.Namespace, "annotate", "pod", instance, "--overwrite", v1alpha1.AnnotationFencing+value)
}

// fencedUnlessQuorumLost: the operator is killed between the wish and the deed.
func (w *world) fencedUnlessQuorumLost() {
	primary := w.primary()
	one := w.replica()
	names := w.cluster().Status.InstanceNames
	other := names[slices.IndexFunc(names, func(n string) bool { return n != primary && n != one })]
	w.killOperatorAfter(func() { w.fence(one, "=on") })
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return slices.Contains(c.Status.FencedInstances, one) })
	w.memberIs(one, "OFFLINE")
	w.fence(other, "=on")
	c := w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.Phase == "Blocked" })
	if !strings.Contains(c.Status.PhaseReason, other+" is not fenced") ||
		slices.Contains(c.Status.FencedInstances, other) {
		w.t.Errorf("fencing a second of three was not refused: %s", c.Status.PhaseReason)
	}
	w.fence(other, "-")
	w.fence(one, "-")
	w.healthy(2 * time.Minute)
	if w.primary() != primary {
		w.t.Errorf("the primary changed from %s to %s because a secondary was fenced", primary, w.primary())
	}
}

func (w *world) memberIs(instance, state string) {
	w.t.Helper()
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return slices.ContainsFunc(c.Status.GroupReplication.Members, func(m v1alpha1.GroupMember) bool {
			return m.Instance == instance && m.State == state
		})
	})
}

// groupPrimaryHangs: the group expels a member that says nothing, and its manager ends
// and restarts mysqld, which would never come back by itself.
func (w *world) groupPrimaryHangs() {
	old := w.primary()
	l := w.startWriting()
	at := w.signal(old, "mysqld", syscall.SIGSTOP)
	outage := l.outageSince(at, time.Minute)
	w.t.Logf("writable %s after mysqld began to hang", outage)
	if outage > groupOutage {
		w.t.Errorf("writable %s after mysqld began to hang; at most %s is wanted", outage, groupOutage)
	}
	w.elected(old)
	l.stopAndLoseNothing()
}

// groupPrimaryPartitioned: the group expels its primary, and no write of either side is
// lost.
func (w *world) groupPrimaryPartitioned() {
	w.awayFromOperator()
	old := w.primary()
	node := w.pod(old).Spec.NodeName
	l := w.startWriting()
	at := w.fault("partition", node)
	outage := l.outageSince(at, 2*time.Minute)
	w.t.Logf("writable %s after the partition", outage)
	if outage > groupOutage+3*time.Second {
		w.t.Errorf("writable %s after the partition", outage)
	}
	w.fault("heal", node)
	w.elected(old)
	l.stopAndLoseNothing()
}

// comeBackBeside: the secondaries of a node that was cut off are back, and the primary is
// who it was.
func (w *world) comeBackBeside(primary, node string) {
	w.t.Helper()
	w.fault("heal", node)
	w.healthy(3 * time.Minute)
	if now := w.primary(); now != primary {
		w.t.Errorf("the primary changed from %s to %s because secondaries were cut off", primary, now)
	}
}

// groupSecondaryPartitioned: the others write on, once the group has expelled it, although
// the operator is killed.
func (w *world) groupSecondaryPartitioned() {
	leader := w.leader()
	primary, names := w.primary(), w.replicas()
	lost := names[slices.IndexFunc(names, func(name string) bool {
		return w.pod(name).Spec.NodeName != leader.Spec.NodeName
	})]
	node := w.pod(lost).Spec.NodeName
	l := w.startWriting()
	at := w.fault("partition", node)
	w.killLeader()
	w.memberIs(lost, "UNKNOWN")
	l.ackedAfter(at.Add(groupOutage), time.Minute)
	w.comeBackBeside(primary, node)
	l.stopAndLoseNothing()
}

// groupRolledOut: the operator is killed when the rollout has begun.
func (w *world) groupRolledOut() {
	l := w.startWriting()
	w.apply(strings.Replace(groupSpec, `"200"`, `"250"`, 1))
	w.becomes(30*time.Second, func(c *v1alpha1.Cluster) bool {
		return c.Status.Phase == "Updating" || c.Status.Phase == "Switchover"
	})
	w.killOperator()
	w.healthy(5 * time.Minute)
	report := l.stopAndLoseNothing()
	if got := w.ask(w.open("rw"), "SELECT @@max_connections"); got != "250" {
		w.t.Errorf("max_connections is %s after the rollout", got)
	}
	if gap := report.LongestGap.Duration(); gap > outageLimit {
		w.t.Errorf("a rolling update stopped writes for %s", gap)
	}
}

// scaledTo: the operator is killed as soon as it has been told.
func (w *world) scaledTo(sizes ...int32) {
	l := w.startWriting()
	for _, size := range sizes {
		w.killOperatorAfter(func() { w.scale(size) })
		w.becomes(4*time.Minute, func(c *v1alpha1.Cluster) bool {
			return testbed.Healthy(c) && len(c.Status.InstanceNames) == int(size) &&
				c.Status.GroupReplication.ObservedViewMax == size
		})
		l.ackedAfter(time.Now(), 10*time.Second)
		w.t.Logf("%d members", size)
	}
	l.stopAndLoseNothing()
}
