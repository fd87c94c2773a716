package instance

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/store/storetest"
)

func TestMysqldIsNotToldWhatToPurgeWhileAccountsAreLocked(t *testing.T) {
	data, dir := t.TempDir(), storetest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		m, asked := writing(data, dir), 0
		nowhere := mysql.Open(data+"/no.sock", m.launcher.version, func() ([]mysql.Account, error) { return nil, nil })
		m.archiver.asks = func() *mysql.Server { asked++; return nowhere }
		var free atomic.Uint64
		free.Store(50 << 30)
		m.archiver.opt.Room = func() (uint64, uint64, error) { return free.Load(), 100 << 30, nil }
		m.st.access.locked = true
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { m.archiver.keepLogs(ctx); close(ended) }()
		<-time.After(2 * facts.PurgeEvery)
		synctest.Wait()
		if asked != 0 {
			t.Errorf("it was asked %d times meanwhile", asked)
		}
		free.Store(1 << 30)
		<-time.After(2 * facts.LookEvery)
		synctest.Wait()
		if asked == 0 {
			t.Error("it was not asked although the volume is nearly full")
		}
		full := asked
		free.Store(50 << 30)
		m.update(func(s *state) { s.access.locked = false })
		<-time.After(2 * facts.PurgeEvery)
		cancel()
		<-ended
		nowhere.Close()
		if asked == full {
			t.Error("it was not asked after that")
		}
	})
}

// A primary of a group, which takes writes, archives nothing while it is not known what became of a
// recovery: what it has not archived stays until then.
func TestWhoseHistoryIsUndecidedKeepsItsLogs(t *testing.T) {
	m := aMember(t)
	see := func(view string, archives bool) {
		c := &v1alpha1.Cluster{}
		c.Name, c.UID = "db", "u-1"
		c.Spec.Replication.Mode = v1alpha1.ReplicationGroup
		c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: &v1alpha1.ObjectStoreSpec{},
			ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: archives}}
		c.Status.PrimaryEpoch, c.Status.CurrentPrimary = 3, "db-2"
		c.Status.GroupReplication = &v1alpha1.GroupReplicationStatus{Bootstrapped: true, ViewID: view,
			Recoveries: []v1alpha1.GroupRecovery{{Epoch: 3, Pending: true}}}
		m.setCluster(c)
		m.update(func(s *state) {
			s.status.server = &core.Server{Group: &core.GroupView{State: core.MemberOnline, Role: core.MemberPrimary}}
			s.mysqld.writable = 3
		})
	}
	for name, c := range map[string]struct {
		view                      string
		enabled                   bool
		archives, keeps, mayPurge bool
	}{
		"the group was seen":                        {"1:5", true, true, false, true},
		"it was not seen since":                     {"", true, false, true, false},
		"it was not, and nothing is to be archived": {"", false, false, false, true},
	} {
		see(c.view, c.enabled)
		if got := !m.archives().IsNone(); got != c.archives {
			t.Errorf("%s: it archives: %v", name, got)
		}
		if keeps, may := m.keepsLogs(), m.mayPurgeByItself(); keeps != c.keeps || may != c.mayPurge {
			t.Errorf("%s: it keeps its logs: %v, and mysqld may purge by itself: %v", name, keeps, may)
		}
	}
}

// nearlyFull has the volume say so to whoever looks after binary logs, and mysqld keep those that have not expired.
func (w *world) nearlyFull(share uint64) {
	w.room = func() (uint64, uint64, error) { return share * 1000, 100_000, nil }
}

// writesLogs has a server write a transaction into each of so many logs, and begin another. They are a while old then.
func (w *world) writesLogs(n *node, many int) {
	w.t.Helper()
	for range many {
		w.exec(w.app(n), "CREATE TABLE IF NOT EXISTS filler (id INT PRIMARY KEY AUTO_INCREMENT)")
		w.exec(w.app(n), "INSERT INTO filler VALUES ()")
		w.exec(w.rootOf(n), "FLUSH BINARY LOGS")
	}
	logs, long := w.logs(n), time.Now().Add(-20*time.Minute)
	for _, l := range logs[:len(logs)-1] {
		must(w.t, os.Chtimes(filepath.Join(n.opt.Dirs.Data, l.Name), long, long))
	}
}

// letsGoOf looks after a server's logs, of which all but the last are archived, and tells how many are left.
func (w *world) letsGoOf(n *node) (left int) {
	w.t.Helper()
	logs := w.logs(n)
	must(w.t, n.m.archiver.lookAfterLogs(w.t.Context(), logs[len(logs)-1].Name))
	return len(w.logs(n))
}

// A replica that is away, and starts again when nobody has the logs that it lacks, is out of work until a human has it
// cloned. What it had is no use to it.
func TestANearlyFullVolumeKeepsWhatAnAwayReplicaLacks(t *testing.T) {
	w := newWorld(t, func(c *v1alpha1.Cluster) {
		archives(c)
		c.Status.InstanceNames = []string{"db-1", "db-2"}
	})
	w.nearlyFull(1)
	one := w.start(1)
	w.bootstrap(one)
	w.writesLogs(one, 2)
	if left := w.letsGoOf(one); left < 3 || !w.purged(one).IsEmpty() { // the first log has no transaction
		t.Fatalf("nothing is known of the replica; %s is purged, and there are %v", w.purged(one), w.logs(one))
	}
	had := w.executed(one)
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Status.GTIDExecutedByInstance = map[string]string{"db-2": had.String()}
		c.Generation++
	})
	until(t, "the manager knows what it had", func() bool {
		c, _ := one.m.archived()
		return c.Status.GTIDExecutedByInstance["db-2"] != ""
	})
	w.writesLogs(one, 2)
	if left := w.letsGoOf(one); left != 3 || !had.Contains(w.purged(one)) || w.purged(one).IsEmpty() {
		t.Errorf("it had %s; %s is purged, and there are %v", had, w.purged(one), w.logs(one))
	}
}

// The group itself says what all of its members have.
func TestANearlyFullVolumeOfAGroupLetsGoOfWhatAllHave(t *testing.T) {
	inAll(t)
	w := newGroup(t, 2)
	w.nearlyFull(1)
	one, two := w.start(1), w.start(2)
	w.madeBy(one)
	w.joinGroup(two, one)
	w.kube.edit(func(c *v1alpha1.Cluster) {
		archives(c)
		c.Status.InstanceNames = []string{host("db-1"), host("db-2")} // by which members are known to each other here
		c.Generation++
	})
	until(t, "the manager knows their names", func() bool {
		c, _ := one.m.archived()
		return slices.Contains(c.Status.InstanceNames, host("db-2"))
	})
	w.writesLogs(one, 2)
	wrote, began := w.executed(one), time.Now()
	for end := time.After(2 * time.Minute); ; <-time.After(time.Second) {
		said, err := one.m.root.CommittedByAll(t.Context())
		must(t, err)
		if said.Contains(wrote) {
			break
		}
		select {
		case <-end:
			t.Fatalf("it wrote %s, and the group says that all have %s", wrote, said)
		default:
		}
	}
	t.Logf("the group knew it after %s", time.Since(began))
	if left := w.letsGoOf(one); left != 1 {
		t.Errorf("all have all, and there are %v", w.logs(one))
	}
	w.fenceWhile(two, func() {
		until(t, "it sees that the other has left", func() bool {
			view, err := one.m.root.GroupView(t.Context())
			return err == nil && len(view.Members) == 1
		})
		w.writesLogs(one, 2)
		if left := w.letsGoOf(one); left != 3 {
			t.Errorf("half of the group is away and lacks it, and there are %v", w.logs(one))
		}
	})
}
