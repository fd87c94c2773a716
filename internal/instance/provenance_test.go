package instance

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// managerOn is a manager that has the lock on a volume, and no mysqld.
func managerOn(t *testing.T, volume, pod string) *manager {
	t.Helper()
	dirs := Dirs{Data: filepath.Join(volume, "data"), Meta: filepath.Join(volume, "manager")}
	if err := os.MkdirAll(dirs.Data, 0o750); err != nil {
		t.Fatal(err)
	}
	m := newManager(Options{Instance: "db-1", PodUID: pod, Node: "node-1", Dirs: dirs, Log: &strings.Builder{}})
	record, err := lockVolume(context.Background(), dirs.Meta)
	if err != nil {
		t.Fatal(err)
	}
	m.record = record
	return m
}

func TestAKilledManagerFindsWhatWasReceivedInTheSamePageCache(t *testing.T) {
	volume := t.TempDir()
	m := managerOn(t, volume, "pod-1")
	if err := m.noteReceiving(); err != nil {
		t.Fatal(err)
	}
	m.record.close()
	m = managerOn(t, volume, "pod-1")
	defer m.record.close()
	if err := m.provenance.noteStart(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if c := m.record.cached(); c.MayLack || !c.Unflushed {
		t.Errorf("remembers %+v", c)
	}
}

func TestAnotherBootMayLackWhatWasReceivedAndRemembersItOverASecondStart(t *testing.T) {
	volume := t.TempDir()
	m := managerOn(t, volume, "pod-1")
	if err := m.noteReceiving(); err != nil {
		t.Fatal(err)
	}
	if err := m.record.change(func(r *volumeRecord) { r.Received.Boot = "another" }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.provenance.noteStart(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		m.record.close()
		m = managerOn(t, volume, "pod-1")
	}
	defer m.record.close()
	if r := m.report(); !m.record.cached().MayLack || !r.MayLack {
		t.Errorf("remembers %+v and reports %t", m.record.cached(), r.MayLack)
	}
	if err := m.provenance.becomeWhole(); err != nil {
		t.Fatal(err)
	}
	if m.record.cached().MayLack {
		t.Error("may still lack something once it is whole")
	}
}

func TestAnOrderlyEndLeavesNothingInThePageCache(t *testing.T) {
	volume := t.TempDir()
	m := managerOn(t, volume, "pod-1")
	if err := os.WriteFile(filepath.Join(m.opt.Dirs.Data, "relay.000001"), []byte("received"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := m.noteReceiving(); err != nil {
		t.Fatal(err)
	}
	m.leaveVolume()
	m = managerOn(t, volume, "pod-2")
	defer m.record.close()
	if c := m.record.cached(); c != (agent.Cached{Noted: true}) {
		t.Errorf("remembers %+v", c)
	}
}

// A file system in sysfs is another directory with each mount; one that has none there lives
// as long as the Pod, as far as anybody can tell.
func TestAMountIsToldByWhatTheKernelShowsOfItOrByThePod(t *testing.T) {
	dir, here := t.TempDir(), Dirs{Meta: t.TempDir()}
	fake := kernel{proc: "/proc", sys: dir}
	one, err := fake.residence(here.Meta, "pod-1", "node-1")
	if err != nil || !one.IsKnown() {
		t.Fatalf("%+v, %v", one, err)
	}
	other, _ := fake.residence(here.Meta, "pod-2", "node-1")
	if one == other {
		t.Error("another Pod on a file system that the kernel does not show is taken for the same mount")
	}
	device, _, _ := strings.Cut(one.Mount, " ")
	link := filepath.Join(dir, "dev/block", device)
	for _, d := range []string{filepath.Dir(link), filepath.Join(dir, "fs/ext4/sdz")} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../devices/sdz", link); err != nil {
		t.Fatal(err)
	}
	one, _ = fake.residence(here.Meta, "pod-1", "node-1")
	other, _ = fake.residence(here.Meta, "pod-2", "node-1")
	if one != other || !strings.Contains(one.Mount, "sdz") {
		t.Errorf("%+v and %+v: the mount is the same for both Pods", one, other)
	}
	keep := filepath.Join(dir, "fs/ext4/kept") // so that the next has another inode
	if err := os.Rename(filepath.Join(dir, "fs/ext4/sdz"), keep); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "fs/ext4/sdz"), 0o750); err != nil {
		t.Fatal(err)
	}
	if again, _ := fake.residence(here.Meta, "pod-1", "node-1"); again == one {
		t.Error("a second mount of the same device is taken for the first")
	}
}

// readsFromLeftToRight: what is committed while a statement waits in its middle shows in the
// variables behind that.
func (w *world) readsFromLeftToRight(n *node, db *sql.DB, before gtid.Set) {
	t := w.t
	holds, err := db.Conn(t.Context())
	must(t, err)
	defer holds.Close()
	_, err = holds.ExecContext(t.Context(), "DO GET_LOCK('middle', 0)")
	must(t, err)
	var executed string
	read := make(chan error, 1)
	go func() {
		row := db.QueryRow("SELECT @@global.gtid_owned, GET_LOCK('middle', 60), @@global.gtid_executed")
		read <- row.Scan(new(string), new(int), &executed)
	}()
	until(t, "the statement waits", func() (waits bool) {
		const of = "SELECT COUNT(*) > 0 FROM performance_schema.metadata_locks WHERE LOCK_STATUS = 'PENDING'"
		must(t, n.m.root.DB().QueryRowContext(t.Context(), of).Scan(&waits))
		return waits
	})
	w.exec(db, "INSERT INTO t (v) VALUES (1)")
	_, err = holds.ExecContext(t.Context(), "DO RELEASE_LOCK('middle')")
	must(t, err)
	must(t, <-read)
	if set, err := gtid.Parse(executed); err != nil || before.Contains(set) {
		t.Errorf("a statement does not read its variables from left to right: %s, %v", executed, err)
	}
}

// What commits wait for is sent to replicas, and acknowledged by them, before it is executed.
func TestACommitThatWaitsIsLoggedAndNotExecuted(t *testing.T) {
	w := newWorld(t, quorum)
	one, two, db := w.acknowledged()

	var name, longest string
	must(t, one.m.root.DB().QueryRow("SHOW GLOBAL VARIABLES WHERE Variable_name IN "+
		"('rpl_semi_sync_source_timeout', 'rpl_semi_sync_master_timeout')").Scan(&name, &longest))
	if longest != "4294967295" { // the longest that the server takes
		t.Errorf("a commit waits for acknowledgements for %s ms", longest)
	}
	isIdle := func(r core.Report) bool { return r.Server != nil && r.Server.SemiSync.WaitSessions == 0 }
	before := w.await(one, "nothing waits", isIdle).Server.Executed
	w.readsFromLeftToRight(one, db, before)

	next := w.epoch() + 1
	w.order(two, control.ReceivePromise{Epoch: next})
	wrote := make(chan error, 1)
	go func() {
		_, err := db.Exec("INSERT INTO t (v) VALUES (2)")
		wrote <- err
	}()
	r := w.await(one, "waiting for acknowledgements", func(r core.Report) bool {
		return r.Server != nil && r.Server.SemiSync.WaitSessions > 0 && !r.Server.Owned.IsEmpty()
	})
	waits := r.Server.Logged().Subtract(r.Server.Executed)
	if waits.Count() != 1 || !waits.Equal(waits.Of(r.Server.UUID)) {
		t.Errorf("of what is logged, %s is not executed", waits)
	}
	w.order(one, control.Demote{Epoch: next})
	<-wrote
	if c := two.m.record.cached(); !c.Unflushed || c.In != two.m.provenance.here() {
		t.Errorf("a replica remembers %+v", c)
	}
}
