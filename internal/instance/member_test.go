package instance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/mysql"
)

// groupAddress: members on one machine have one address and differ in their ports.
func (s site) groupAddress(instance string) string {
	n, _ := strconv.Atoi(instance[strings.LastIndexByte(instance, '-')+1:])
	return fmt.Sprintf("127.0.0.1:%d", s.port+4+n)
}

// newGroup makes a world whose instances are members of a group, of which db-1 is to
// make it.
func newGroup(t *testing.T, instances int32) *world {
	return newWorld(t, func(c *v1alpha1.Cluster) {
		c.Spec.Instances = instances
		c.Spec.Replication.Mode = v1alpha1.ReplicationGroup
		c.Status.TargetPrimary = "db-1"
		c.Status.PrimaryEpoch = 1
		c.Status.GroupReplication = &v1alpha1.GroupReplicationStatus{
			GroupName: "7f1a6d0e-0000-5000-8000-000000000001", Bootstrapper: "db-1"}
		for i := range instances {
			c.Status.InstanceNames = append(c.Status.InstanceNames, fmt.Sprintf("db-%d", i+1))
			c.Status.GroupReplication.Members = append(c.Status.GroupReplication.Members,
				v1alpha1.GroupMember{Instance: fmt.Sprintf("db-%d", i+1), Address: host(fmt.Sprintf("db-%d", i+1))})
		}
	})
}

// madeBy does what the operator does when it sees the group.
func (w *world) madeBy(n *node) {
	w.t.Helper()
	w.awaitRole(n, core.MemberPrimary)
	w.kube.edit(func(c *v1alpha1.Cluster) {
		now := metav1.NowMicro()
		c.Status.GroupReplication.Bootstrapped, c.Status.EstablishedAt = true, &now
	})
	w.primaryIs(n)
}

func (w *world) primaryIs(n *node) {
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Status.CurrentPrimary, c.Status.TargetPrimary = n.opt.Instance, n.opt.Instance
		c.Status.PrimaryEpoch++
	})
}

func (w *world) awaitRole(n *node, role core.MemberRole) core.Report {
	w.t.Helper()
	return w.await(n, "online as "+string(role), func(r core.Report) bool {
		settled := n.m.membership.known().Settled
		return r.Server != nil && r.Server.Group != nil && r.Server.Group.State == core.MemberOnline &&
			r.Server.Group.Role == role && settled == role
	})
}

// joinGroup waits for the copy and for the membership apart. The copy takes as long as the machine takes. Whoever was
// killed then waits for the others, which pause for up to 10 s before they try its address again, and for as long
// before they read what it answers: docs/design/2026-11-29-two-pauses.md.
func (w *world) joinGroup(n, donor *node) {
	w.t.Helper()
	w.await(n, "awaiting a clone", func(r core.Report) bool { return r.State == core.AwaitingClone && r.Server != nil })
	w.order(n, control.CloneFrom{Epoch: w.epoch(), Donor: donor.opt.Listen})
	w.await(n, "back with the copy", func(r core.Report) bool {
		return r.Data == core.DataPopulated && r.Server != nil
	})
	w.awaitRole(n, core.MemberSecondary)
}

// threeMembers makes a group of three.
func threeMembers(t *testing.T) (*world, []*node) {
	w := newGroup(t, 3)
	n := []*node{w.start(1), w.start(2), w.start(3)}
	w.madeBy(n[0])
	w.exec(w.app(n[0]), "CREATE TABLE t (id INT PRIMARY KEY)")
	w.joinGroup(n[1], n[0])
	w.joinGroup(n[2], n[1])
	return w, n
}

// elected waits until one of the others is primary, and does what the operator does.
func (w *world) elected(others ...*node) *node {
	w.t.Helper()
	for began := time.Now(); time.Since(began) < patience; <-time.After(5 * time.Millisecond) {
		for _, n := range others {
			if g := n.report().Server; g != nil && g.Group != nil && g.Group.State == core.MemberOnline &&
				g.Group.Role == core.MemberPrimary && g.Group.HasQuorum() {
				w.awaitRole(n, core.MemberPrimary)
				w.primaryIs(n)
				return n
			}
		}
	}
	w.t.Fatal("nobody was elected")
	return nil
}

func TestTheLifeOfAGroup(t *testing.T) {
	inAll(t)
	w, n := threeMembers(t)
	w.fenceWhile(n[2], func() {})
	w.awaitRole(n[2], core.MemberSecondary)
	ws := w.startPacedWriters(4, 20*time.Millisecond)
	ws.awaitMore(50)
	ws.resetGap()
	idle, err := w.app(n[0]).Begin()
	must(t, err)
	began := time.Now()
	target := n[1].report().Server.UUID
	w.order(n[0], control.SetGroupPrimary{Epoch: w.epoch(), Member: target, Within: 1})
	w.awaitRole(n[1], core.MemberPrimary)
	t.Logf("handed over after %s, of which an idle transaction may hold it up for 1 s", time.Since(began))
	if err := idle.Commit(); err == nil {
		t.Error("the transaction that was idle while the group handed over was not ended")
	}
	w.primaryIs(n[1])
	ws.awaitMore(20)
	t.Logf("switchover: longest gap between acknowledgements %s", ws.resetGap())

	_ = n[1].proc().handle.Kill()
	next, other := w.elected(n[0], n[2]), n[0]
	if next == other {
		other = n[2]
	}
	ws.awaitMore(20)
	t.Logf("crash: longest gap between acknowledgements %s", ws.resetGap())
	w.awaitRole(n[1], core.MemberSecondary)
	if now := w.kube.get().Status.CurrentPrimary; now != next.opt.Instance {
		t.Errorf("after the return of the former primary the primary is %s", now)
	}
	ws.awaitMore(20)
	ws.resetGap()

	next.m.terminate()
	last := w.elected(n[1], other)
	ws.awaitMore(20)
	t.Logf("stop, with no operator to relieve it: longest gap between acknowledgements %s", ws.resetGap())
	select {
	case err := <-next.done:
		must(t, err)
		next.done <- nil
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	if lost := ws.lost(w.app(last)); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost: %v", len(lost), ws.count(), lost)
	}
}

// fenceWhile: a fenced member leaves the group and runs on, read-only; something is done
// meanwhile, and it may come back.
func (w *world) fenceWhile(n *node, meanwhile func()) {
	w.t.Helper()
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.FencedInstances = []string{n.opt.Instance} })
	w.await(n, "fenced", func(r core.Report) bool {
		return r.State == core.Fenced && r.Server != nil && r.Server.SuperReadOnly &&
			r.Server.Group.State == core.MemberOffline
	})
	meanwhile()
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.FencedInstances = nil })
}

// Two of three are gone: the third, a secondary, goes on alone when it is told to.
// When all are gone, the most advanced reboots the group, and nobody by itself.
func TestALostQuorumIsForcedAndALostGroupMadeAnew(t *testing.T) {
	w, n := threeMembers(t)
	w.exec(w.app(n[0]), "INSERT INTO t VALUES (1)")
	w.awaitRows(w.app(n[2]), 1)
	w.crashManager(n[0])
	w.crashManager(n[1])
	w.await(n[2], "without a quorum", func(r core.Report) bool {
		return r.Server != nil && r.Server.Group.State == core.MemberOnline && !r.Server.Group.HasQuorum()
	})
	w.awaitSettings(n[2], 0, 3600)
	if _, err := w.tryOrder(n[2], control.ForceMembers{Epoch: w.epoch(), Members: []string{"db-3"},
		View: "1:1"}); err == nil || !strings.Contains(err.Error(), "was to be forced in view 1:1") {
		t.Fatalf("told to go on in another view, it says %v", err)
	}
	w.order(n[2], control.ForceMembers{Epoch: w.epoch(), Members: []string{"db-3"},
		View: n[2].m.facts().Server.Group.ViewID})
	w.elected(n[2])
	w.exec(w.app(n[2]), "INSERT INTO t VALUES (2)")
	w.awaitSettings(n[2], 3, 0)

	_ = n[2].proc().handle.Kill()
	w.await(n[2], "back and in no group", func(r core.Report) bool {
		return r.Server != nil && r.Server.Group.State == core.MemberOffline && r.Reason == "AwaitingGroup"
	})
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.PrimaryEpoch++ })
	w.order(n[2], control.RebootGroup{Epoch: w.epoch()})
	w.elected(n[2])
	w.exec(w.app(n[2]), "INSERT INTO t VALUES (3)")
	w.remadeByOneThatLooksForIt(w.excludedUntilAdmitted(1), n[2])
}

// Two of four are left: one goes on with the other.
func TestAQuorumIsForcedWithAnotherSurvivor(t *testing.T) {
	inAll(t)
	w := newGroup(t, 4)
	n := []*node{w.start(1), w.start(2), w.start(3), w.start(4)}
	w.madeBy(n[0])
	w.exec(w.app(n[0]), "CREATE TABLE t (id INT PRIMARY KEY)")
	for i, joins := range n[1:] {
		w.joinGroup(joins, n[i])
	}
	w.crashManager(n[0])
	w.crashManager(n[1])
	for _, left := range n[2:] {
		w.await(left, "without a quorum", func(r core.Report) bool {
			return r.Server != nil && r.Server.Group.State == core.MemberOnline && !r.Server.Group.HasQuorum()
		})
	}
	w.order(n[2], control.ForceMembers{Epoch: w.epoch(), Members: []string{"db-3", "db-4"}})
	w.elected(n[2:]...)
	w.exec(w.app(w.nodes[w.kube.get().Status.CurrentPrimary]), "INSERT INTO t VALUES (1)")
	for _, left := range n[2:] {
		w.awaitRows(w.app(left), 1)
	}
}

// remadeByOneThatLooksForIt: the last other member dies while this one is about to join it.
// It has left before: after a crash it would have to be back before the other one suspects it,
// and has no quorum any more.
func (w *world) remadeByOneThatLooksForIt(n, last *node) {
	w.t.Helper()
	w.fenceWhile(n, func() {})
	w.await(n, "joining", func(r core.Report) bool { return r.Reason == "Joining" })
	w.crashManager(last)
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.PrimaryEpoch++ })
	w.order(n, control.RebootGroup{Epoch: w.epoch()})
	w.elected(n)
	w.exec(w.app(n), "INSERT INTO t VALUES (4)")
}

// excludedUntilAdmitted: one that was left out stays out, as the operator says, although the
// group holds all its numbers; and joins when it is admitted.
func (w *world) excludedUntilAdmitted(ordinal int) *node {
	w.t.Helper()
	name := fmt.Sprintf("db-%d", ordinal)
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Status.GroupReplication.LeftOut = []v1alpha1.LeftOutMember{{Instance: name}}
	})
	back := w.start(ordinal)
	w.await(back, "left out", func(r core.Report) bool {
		return r.Reason == "LeftOut" && r.Server != nil && r.Server.Group.State == core.MemberOffline
	})
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.DivergedInstances = []string{name} })
	w.await(back, "diverged", func(r core.Report) bool {
		return r.Reason == "Diverged" && r.Server != nil && r.Errant.Equal(r.Server.Executed)
	})
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Status.DivergedInstances, c.Status.GroupReplication.LeftOut[0].Admitted = nil, true
	})
	w.awaitRole(back, core.MemberSecondary)
	w.awaitRows(w.app(back), 3)
	return back
}

// awaitSettings: of mysqld's own attempts to join again, and of how long it waits for members
// that it does not reach.
func (w *world) awaitSettings(n *node, rejoinTries, expelTimeout int) {
	w.t.Helper()
	db := w.rootOf(n)
	w.await(n, fmt.Sprintf("told to try %d times to join again, and to wait %d s for others", rejoinTries,
		expelTimeout), func(core.Report) bool {
		var tries, timeout int
		must(w.t, db.QueryRow("SELECT @@global.group_replication_autorejoin_tries, "+
			"@@global.group_replication_member_expel_timeout").Scan(&tries, &timeout))
		return tries == rejoinTries && timeout == expelTimeout
	})
}

// A member that was expelled while it was away keeps clients out, as was asked for; back
// in the group, it lets them in.
func TestAMemberThatIsBackLetsClientsInAgain(t *testing.T) {
	inAll(t)
	w := newGroup(t, 3)
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Spec.Replication.GroupReplication = &v1alpha1.GroupReplicationSpec{ExitStateAction: "OFFLINE_MODE",
			AutoRejoinTries: new(int32(0))}
	})
	n := []*node{w.start(1), w.start(2), w.start(3)}
	w.madeBy(n[0])
	w.joinGroup(n[1], n[0])
	w.joinGroup(n[2], n[1])
	must(t, n[2].proc().handle.Signal(syscall.SIGSTOP))
	w.await(n[0], "a group of two", func(r core.Report) bool {
		return r.Server != nil && len(r.Server.Group.Members) == 2
	})
	must(t, n[2].proc().handle.Signal(syscall.SIGCONT))
	w.await(n[2], "expelled", func(r core.Report) bool { // and for seconds, until it may join again
		return r.Server != nil && r.Server.Group != nil && r.Server.Group.State != core.MemberOnline
	})
	w.awaitRole(n[2], core.MemberSecondary)
	var times int
	var offline bool
	must(t, w.rootOf(n[2]).QueryRow("SELECT COUNT(*), @@global.offline_mode FROM performance_schema.error_log WHERE "+
		"error_code = 'MY-013486'").Scan(&times, &offline))
	if times == 0 {
		t.Error("it kept no clients out when it was expelled")
	}
	if offline {
		t.Error("it keeps clients out although it is a member again")
	}
}

// Who was away for so long that nobody keeps what it lacks is cloned by the group itself:
// mysqld fetches the data and ends, and its manager starts it again. If it is killed when
// its own data is gone already, it is no member that lacks a little: it has nothing.
func TestAMemberWhoseGapWasPurgedIsClonedAnew(t *testing.T) {
	inAll(t)
	w, n := threeMembers(t)
	w.kube.edit(func(c *v1alpha1.Cluster) { // as the operator sees it when mysqld shuts down to start with the copy
		c.Status.GroupReplication.HasQuorum, c.Status.GroupReplication.Members[2].State = true, "UNKNOWN"
	})
	w.missesWhatIsPurged(n[2], n[0], n[1], 1)
	before := n[2].proc()
	w.await(n[2], "started on the copy", func(core.Report) bool { return n[2].proc() != before })
	w.awaitRole(n[2], core.MemberSecondary)
	w.awaitRows(w.app(n[2]), 1)
	expectCopyBrokeOff(t, n[2], false)
	if code := before.exit.ExitCode(); code != exitRestart {
		t.Errorf("mysqld ended with code %d after the clone: %s", code, before.exit)
	}

	w.isKilledWithoutData(n[2], n[0], n[1], 2, func() {}) // mysqld starts, and says that the copy was interrupted
	w.isKilledWithoutData(n[2], n[0], n[1], 3, func() { namesALogThatIsGone(t, n[2]) })
}

// isKilledWithoutData has the group replace a member's data, and kills it when its own are gone.
func (w *world) isKilledWithoutData(away, primary, other *node, row int, leave func()) {
	w.t.Helper()
	db := w.rootOf(away)
	w.exec(db, "SET GLOBAL clone_delay_after_data_drop = 3600") // the copy comes when the test is over
	w.missesWhatIsPurged(away, primary, other, row)
	w.await(away, "without its data", func(core.Report) bool {
		tables := -1
		err := db.QueryRow("SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 't'").Scan(&tables)
		return err == nil && tables == 0
	})
	expectCopyBrokeOff(w.t, away, true)
	leave()
	_ = away.proc().handle.Kill()
	w.await(away, "awaiting a clone", func(r core.Report) bool {
		return r.State == core.AwaitingClone && r.Data == core.DataScratch && r.Server != nil &&
			r.Server.Executed.IsEmpty()
	})
	w.joinGroup(away, primary)
	w.awaitRows(w.app(away), row)
}

func expectCopyBrokeOff(t *testing.T, n *node, want bool) {
	t.Helper()
	if broken, err := mysql.CopyBrokeOff(n.m.opt.Dirs.Data); broken != want || err != nil {
		t.Errorf("whether a copy has broken off: %t, %v; want %t", broken, err, want)
	}
}

// namesALogThatIsGone leaves the index of the binary logs as a copy does that has dropped a
// log and not written the index yet. mysqld does not start on that.
func namesALogThatIsGone(t *testing.T, n *node) {
	t.Helper()
	var index *os.File
	var err error
	until(t, "the index is there: mysqld puts another in its place", func() bool {
		index, err = os.OpenFile(filepath.Join(n.m.opt.Dirs.Data, "binlog.index"), os.O_APPEND|os.O_WRONLY, 0)
		return !errors.Is(err, os.ErrNotExist)
	})
	must(t, err)
	_, err = index.WriteString("./binlog.000009\n")
	must(t, errors.Join(err, index.Close()))
}

// missesWhatIsPurged keeps a member out while a row is written, and lets it come back when
// no binary log has that row.
func (w *world) missesWhatIsPurged(away, primary, other *node, row int) {
	w.t.Helper()
	w.fenceWhile(away, func() {
		w.exec(w.app(primary), fmt.Sprintf("INSERT INTO t VALUES (%d)", row))
		w.awaitRows(w.app(other), row)
		for _, donor := range []*node{primary, other} {
			w.exec(w.rootOf(donor), "FLUSH BINARY LOGS")
			w.exec(w.rootOf(donor), "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 HOUR")
		}
	})
}

// mysqld could not be told, when it had made the group, to make no other.
func TestMysqldIsToldAgainToMakeNoOtherGroup(t *testing.T) {
	w := newGroup(t, 1)
	n := w.start(1)
	w.madeBy(n)
	root := w.rootOf(n)
	w.exec(root, "SET GLOBAL group_replication_bootstrap_group = ON")
	n.m.membership.change(func(s *memberState) { s.Bootstraps = true })
	until(t, "it is told so", func() bool { return !n.m.membership.known().Bootstraps })
	var on bool
	must(t, root.QueryRow("SELECT @@global.group_replication_bootstrap_group").Scan(&on))
	if on {
		t.Error("mysqld is set to make another group")
	}
}
