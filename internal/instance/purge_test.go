package instance

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
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
		<-time.After(2 * purgeLook)
		synctest.Wait()
		if asked != 0 {
			t.Errorf("it was asked %d times meanwhile", asked)
		}
		free.Store(1 << 30)
		<-time.After(2 * archiveLook)
		synctest.Wait()
		if asked == 0 {
			t.Error("it was not asked although the volume is nearly full")
		}
		full := asked
		free.Store(50 << 30)
		m.update(func(s *state) { s.access.locked = false })
		<-time.After(2 * purgeLook)
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
