package instance

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// mountSmall puts a file system of its own, of a given size, at a directory.
func mountSmall(t *testing.T, dir, size string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0777,size="+size); err != nil {
		t.Skipf("root may mount a small volume, and only then can it be full: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// What is cut off the binary log is kept on the volume: when that is full, the reason is told by its name.
func TestATailThatFindsNoRoomIsAFullVolume(t *testing.T) {
	dir := t.TempDir()
	d := Dirs{Data: filepath.Join(dir, "data"), Meta: filepath.Join(dir, "meta")}
	mountSmall(t, d.Meta, "1m")
	must(t, os.MkdirAll(filepath.Join(d.Meta, tailsDir), 0o750))
	fillUp(t, d.Meta)
	must(t, os.MkdirAll(d.Data, 0o755))
	log, err := os.ReadFile("../binlog/testdata/writes.bin")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(d.Data, "binlog.000001"), log, 0o600))
	must(t, os.WriteFile(d.binlogIndex(), []byte("./binlog.000001\n"), 0o600))
	var full *namedError
	err = tailCutter{dirs: d, log: slog.New(slog.DiscardHandler)}.cut(agent.CutTail{})
	if !errors.As(err, &full) || full.Problem.Reason != core.InstanceDiskFull {
		t.Errorf("it says: %v", err)
	}
	left, err := os.ReadFile(filepath.Join(d.Data, "binlog.000001"))
	must(t, err)
	if len(left) != len(log) {
		t.Errorf("%d of %d bytes are left, and what was cut is nowhere", len(left), len(log))
	}
}

// fillUp takes all that is left on a volume.
func fillUp(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	must(t, err)
	defer func() { _ = f.Close() }()
	for chunk := make([]byte, 1<<20); len(chunk) > 0; {
		if _, err = f.Write(chunk); errors.Is(err, syscall.ENOSPC) {
			chunk = chunk[:len(chunk)/2]
			continue
		}
		must(t, err)
	}
	var fs unix.Statfs_t
	must(t, unix.Statfs(dir, &fs))
	if fs.Bavail != 0 {
		t.Fatalf("%d blocks are left", fs.Bavail)
	}
}

// fullPrimary starts a primary, fills its volume, and returns when a commit hangs there; committed tells what
// comes of that.
func (w *world) fullPrimary() (one *node, volume string, committed <-chan error) {
	w.t.Helper()
	volume = filepath.Join(w.dir, "db-1", "volume")
	mountSmall(w.t, volume, "600m")
	one = w.start(1)
	w.bootstrap(one)
	db := w.app(one)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	fillUp(w.t, volume)
	return one, volume, awaitHungCommit(w.t, db)
}

// saysThatItIsFull waits until such a primary says so. Nobody else can tell that commits wait for space:
// mysqld answers all that needs none.
func (w *world) saysThatItIsFull(one *node) {
	w.t.Helper()
	w.await(one, "full", func(r core.Report) bool {
		return r.Reason == core.InstanceDiskFull && r.State == core.Running && r.WritableEpoch == w.epoch() &&
			r.Room.Full && r.Room.Low && r.Room.Size == 600<<20
	})
}

// mysqld waits for space within a commit, for ever, and goes on answering what needs none. A
// successor can be promoted on the promise of this primary only, which must need no space either.
func TestAPrimaryWhoseVolumeIsFullObeysADemotion(t *testing.T) {
	w := newWorld(t, nil)
	one, _, _ := w.fullPrimary()
	if r := one.report(); r.State != core.Running || r.WritableEpoch != w.epoch() || r.Server == nil {
		t.Errorf("with a commit that hangs it says %+v", r)
	}
	w.saysThatItIsFull(one)
	next := w.epoch() + 1
	r := w.order(one, control.Demote{Epoch: next})
	if r.NoWritesBelow != next || r.WritableEpoch != 0 {
		t.Errorf("ordered to take no more writes: %+v", r)
	}
	again := &recordFile{dir: one.opt.Dirs.Meta}
	must(t, again.load())
	if again.now.NoWritesBelow != next || again.now.Stage != stagePopulated {
		t.Errorf("the next manager will remember %+v", again.now)
	}
}

// TestAPrimaryWhoseVolumeIsFullSaysSo until it has space again.
func TestAPrimaryWhoseVolumeIsFullSaysSo(t *testing.T) {
	inAll(t)
	w := newWorld(t, nil)
	one, volume, committed := w.fullPrimary()
	w.saysThatItIsFull(one)
	must(t, unix.Mount("tmpfs", volume, "tmpfs", unix.MS_REMOUNT, "size=1g"))
	select {
	case err := <-committed:
		must(t, err)
	case <-time.After(2 * patience): // mysqld tries once a minute
		t.Fatal("the commit has not ended, although there is space")
	}
	w.await(one, "not full", func(r core.Report) bool {
		return r.Reason == "" && !r.Room.Full && !r.Room.Low && r.Room.Size == 1<<30
	})
}

// A group has the transaction by then, and its primary still waits for space to write it down.
func TestAFullPrimaryOfAGroupSaysSo(t *testing.T) {
	inAll(t)
	w := newGroup(t, 1)
	volume := filepath.Join(w.dir, "db-1", "volume")
	mountSmall(t, volume, "700m")
	one := w.start(1)
	w.madeBy(one)
	db := w.app(one)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	fillUp(t, volume)
	awaitHungCommit(t, db)
	w.await(one, "full", func(r core.Report) bool {
		return r.Reason == core.InstanceDiskFull && r.State == core.Running && r.TakesWrites()
	})
}

// The receiver of a full replica waits for space, for ever, and a STOP waits for it. Without the
// promise of this replica nobody could be promoted in its primary's place.
func TestAReplicaWhoseVolumeIsFullStopsReceiving(t *testing.T) {
	w := newWorld(t, quorum)
	volume := filepath.Join(w.dir, "db-2", "volume")
	mountSmall(t, volume, "600m")
	one, two, db := w.acknowledged()
	w.exec(db, "ALTER TABLE t ADD large LONGBLOB")
	w.exec(db, "INSERT INTO t (v) VALUES (1)")
	w.awaitRows(w.app(two), 1)
	complete := w.executed(one)
	fillUp(t, volume)
	committed := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(t.Context(), "INSERT INTO t (v, large) VALUES (2, REPEAT('x', 131072))")
		committed <- err
	}()
	w.awaitReceiverWithoutSpace(two)
	<-time.After(2 * core.SilentAfter)
	full := w.await(two, "full", func(r core.Report) bool { return r.Reason == core.InstanceDiskFull })
	if c := full.Server.Replication; !c.NoSpace || c.Silent || full.State != core.Running {
		t.Errorf("without space to receive it says %s, and of its replication %+v", full.State, c)
	}

	began, next := time.Now(), w.epoch()+1
	r := w.order(two, control.ReceivePromise{Epoch: next})
	t.Logf("it stopped receiving after %s", time.Since(began))
	if r.Withheld == nil || r.Withheld.Below != next || r.Server.Replication.IORunning {
		t.Errorf("ordered to receive nothing more: %+v", r)
	}
	if has := r.Server.Holds(); !has.Equal(complete) || !r.Server.Replication.NoSpace {
		t.Errorf("it says that it holds %s of %s, and of its replication %+v", has, complete,
			r.Server.Replication)
	}
	must(t, os.Remove(filepath.Join(volume, "filler")))
	w.awaitPrimary(one, w.grant(one.opt.Instance, core.ProofManagerFenced, one.opt.Instance, "", 1))
	must(t, <-committed)
	w.awaitFollowing(two)
	w.awaitRows(w.app(two), 2)
	if at, to := w.executed(one), w.executed(two); !at.Equal(to) {
		t.Errorf("the primary holds %s, the replica %s", at, to)
	}
}

// awaitReceiverWithoutSpace waits until the receiver waits for space on its volume.
func (w *world) awaitReceiverWithoutSpace(n *node) {
	w.t.Helper()
	root := w.rootOf(n)
	until(w.t, "the receiver waits for space", func() bool {
		var waits bool
		must(w.t, root.QueryRow(`SELECT COALESCE(MAX(t.PROCESSLIST_STATE = 'Waiting for disk space'), 0)
			FROM performance_schema.replication_connection_status r
			JOIN performance_schema.threads t USING (THREAD_ID)`).Scan(&waits))
		return waits
	})
}

// awaitHungCommit writes until a commit does not come back, and returns where it tells once it has.
func awaitHungCommit(t *testing.T, db *sql.DB) (committed <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	written := make(chan error)
	go func() {
		defer close(written)
		for ctx.Err() == nil {
			_, err := db.ExecContext(ctx, "INSERT INTO t (v) VALUES (1)")
			select {
			case written <- err:
			case <-ctx.Done():
			}
		}
	}()
	for end := time.After(patience); ; {
		select {
		case err := <-written:
			must(t, err)
		case <-time.After(5 * time.Second):
			return written
		case <-end:
			t.Fatal("mysqld goes on writing to a full volume")
		}
	}
}
