package instance

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// holdsUpApplier has a session hold a lock on a table, for as long as mysqld lives: the applier
// waits where that table is altered.
func (w *world) holdsUpApplier(n *node, table string) {
	w.t.Helper()
	c, err := w.rootOf(n).Conn(context.Background())
	must(w.t, err)
	for _, statement := range []string{"BEGIN", "SELECT * FROM app_db." + table} {
		_, err = c.ExecContext(context.Background(), statement)
		must(w.t, err)
	}
}

// hasReceivedOnly: two of three have received what they could not apply, so that it was
// acknowledged, and then all are gone.
func (w *world) hasReceivedOnly(n []*node, rows int) {
	w.t.Helper()
	w.exec(w.app(n[0]), "CREATE TABLE v (id INT PRIMARY KEY)")
	for _, away := range n[1:] {
		until(w.t, away.opt.Instance+" has the table", func() bool {
			_, err := w.rootOf(away).Exec("DO (SELECT COUNT(*) FROM app_db.v)")
			return err == nil
		})
		w.holdsUpApplier(away, "v")
	}
	w.exec(w.app(n[0]), "ALTER TABLE v ADD COLUMN y INT")
	for i := range rows {
		w.exec(w.app(n[0]), fmt.Sprintf("INSERT INTO v VALUES (%d, 0)", i))
	}
	held := w.executed(n[0]) // its last report may be from before all of it
	for _, away := range n[1:] {
		w.await(away, "holding what it could not apply", func(r core.Report) bool {
			return r.Server != nil && r.Server.Holds().Contains(held) && !r.Server.Executed.Contains(held)
		})
	}
	for _, gone := range n {
		w.crashManager(gone)
	}
}

// A transaction is acknowledged when a majority has received it, and need not be applied there.
func TestAGroupIsRebootedFromWhatAMemberHadReceivedAndNotApplied(t *testing.T) {
	const rows = 100
	w, n := threeMembers(t)
	w.hasReceivedOnly(n, rows)
	back := w.start(2)
	w.await(back, "back", func(r core.Report) bool {
		return r.Server != nil && r.Server.Group != nil && r.Server.Group.State == core.MemberOffline
	})
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.PrimaryEpoch++ })
	w.order(back, control.RebootGroup{Epoch: w.epoch()})
	w.elected(back)
	w.await(back, "writable", func(r core.Report) bool { return r.Server != nil && !r.Server.SuperReadOnly })
	found := 0
	must(t, w.rootOf(back).QueryRow("SELECT COUNT(y) FROM app_db.v").Scan(&found))
	if found != rows {
		t.Errorf("of %d acknowledged rows there are %d", rows, found)
	}
}

// What mysqld was writing when it was killed is no hindrance to the next. Without the page cache
// in which its relay logs were, the next does without them, until the group has sent it all.
func TestAMemberThatWasKilledReadsItsRelayLogsAgainWhereTheyAre(t *testing.T) {
	inAll(t)
	w, n := threeMembers(t)
	ws := w.startPacedWriters(4, 20*time.Millisecond)
	ws.awaitMore(100)
	for _, lost := range []bool{false, true, false} {
		if lost {
			must(t, n[2].m.record.change(func(r *volumeRecord) { r.Received.Boot = "another" }))
		}
		before := n[2].proc()
		_ = before.handle.Kill()
		w.await(n[2], "started again", func(r core.Report) bool { return n[2].proc() != before && r.Server != nil })
		var drops bool
		must(t, w.rootOf(n[2]).QueryRow("SELECT @@global.relay_log_recovery").Scan(&drops))
		if drops != lost {
			t.Errorf("where its page cache was lost (%t) it drops its relay logs: %t", lost, drops)
		}
		w.awaitRole(n[2], core.MemberSecondary)
		ws.awaitMore(100)
		w.await(n[2], "whole", func(r core.Report) bool { return !r.MayLack })
	}
	if lost := ws.lost(w.app(n[2])); len(lost) > 0 {
		t.Errorf("of %d acknowledged writes %d are lost", ws.count(), len(lost))
	}
}
