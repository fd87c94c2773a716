package instance

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/binlog"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/restore"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// TestWhatAFailoverLostIsNotRestoredAndCanBeRead: the replica has not received the primary's last
// transaction, which is archived.
func TestWhatAFailoverLostIsNotRestoredAndCanBeRead(t *testing.T) {
	from := newWorld(t, func(c *v1alpha1.Cluster) { archives(c); c.Spec.Instances = 2 })
	dir := storetest.Dir(t)
	from.files(dir, "archive")
	one, two := from.start(1), from.start(2)
	from.bootstrap(one)
	db := from.app(one)
	from.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	s, err := store.Open(dir)
	must(t, err)
	from.backUp(one, s)
	from.exec(db, "INSERT INTO t (v) VALUES (1)")
	from.join(two, one)
	from.awaitRows(from.app(two), 1)
	from.crashManager(two)
	before := from.executed(one)
	from.exec(db, "INSERT INTO t (v) VALUES (2)")
	lost := from.executed(one).Subtract(before)
	from.awaitArchived(one)
	if text := from.lost(dir, 0); !strings.HasPrefix(text, "No failover") {
		t.Errorf("before the failover it says\n%s", text)
	}
	from.crashManager(one)
	two = from.start(2)
	from.awaitPrimary(two, from.grant("db-2", core.ProofPodTerminated, "db-1", "", 0))
	from.exec(from.app(two), "INSERT INTO t (v) VALUES (3)")
	from.awaitArchived(two)
	from.crashManager(two)

	lines := strings.Split(strings.TrimSpace(from.lost(dir, 0)), "\n")
	if fields := strings.Fields(lines[len(lines)-1]); len(lines) != 2 || len(fields) != 6 ||
		strings.Join(fields[:3], " ") != "1 db-1 1" || fields[5] != lost.String() {
		t.Errorf("lost is %s, and it says\n%s", lost, strings.Join(lines, "\n"))
	}
	if got := transactionsOf(t, from.lost(dir, 1)); !got.Equal(lost) {
		t.Errorf("lost is %s, and the log has %s", lost, got)
	}
	to := recovery.Task{Cluster: "db", Target: recovery.Target{GTID: lost.String()}}
	if _, err := restore.Find(t.Context(), s, seal.Key{}, to, two.m.launcher.version().String()); err == nil ||
		!strings.Contains(err.Error(), "TargetLost") {
		t.Errorf("a restore to what is lost: %v", err)
	}
	w := from.restoring(dir, "")
	restored := w.start(1)
	w.awaitPrimary(restored, w.grant("db-1", core.ProofBootstrap, "", "", 0))
	var rows string
	must(t, w.asApp(restored, "new-app-password").QueryRow("SELECT GROUP_CONCAT(v ORDER BY v) FROM t").Scan(&rows))
	if executed := w.executed(restored); rows != "1,3" || !executed.Intersect(lost).IsEmpty() {
		t.Errorf("restored, it has the rows %s, and %s", rows, executed)
	}
}

// lost is what is told of what failovers have lost.
func (w *world) lost(dir string, epoch int64) string {
	w.t.Helper()
	var out bytes.Buffer
	must(w.t, Lost(w.t.Context(), dir, "db", epoch, &out))
	return out.String()
}

// transactionsOf are those in a binary log.
func transactionsOf(t *testing.T, log string) (all gtid.Set) {
	t.Helper()
	stream, err := binlog.NewStream(strings.NewReader(log))
	must(t, err)
	for {
		e, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		if e.Begins != nil {
			all = all.Union(e.Begins.ID)
		}
	}
}
