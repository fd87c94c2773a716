//go:build e2e

package e2e

import (
	"database/sql"
	"fmt"
	"maps"
	"time"

	"cnmsql.co/api/v1alpha1"
)

// slowly has backups take some ten seconds.
func (b *backedUp) slowly(do func()) {
	b.t.Helper()
	limit := func(bytes int) {
		b.kubectl("-n", b.key.Namespace, "patch", "cluster", b.key.Name, "--type=merge", "-p",
			fmt.Sprintf(`{"spec":{"backup":{"maxBytesPerSecond":%d}}}`, bytes))
	}
	limit(200_000)
	do()
	limit(0)
}

// takes waits until a Backup is under way.
func (b *backedUp) takes(name string) *v1alpha1.BackupStatus {
	b.t.Helper()
	return b.awaits(name, time.Minute, func(s *v1alpha1.BackupStatus) bool {
		return s.Progress != nil && s.Progress.Bytes > 0
	})
}

// donorChangesRole: a replica becomes the primary while it is backed up, and then gives that up
// while it is backed up again. Both backups complete.
func (b *backedUp) donorChangesRole() {
	l := b.startWriting()
	b.slowly(func() {
		b.backUp("of-a-replica", "")
		donor := b.takes("of-a-replica").InstanceName
		if donor == b.primary() {
			b.t.Fatalf("the primary %s is backed up, and not a replica", donor)
		}
		b.switchTo(donor)
		b.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.CurrentPrimary == donor })
	})
	replica := b.completes("of-a-replica")
	b.healthy(time.Minute)
	b.slowly(func() {
		b.backUp("of-the-primary", "  target: primary\n")
		donor, to := b.takes("of-the-primary").InstanceName, b.replica()
		if donor != b.primary() {
			b.t.Fatalf("%s is backed up, and not the primary", donor)
		}
		b.switchTo(to)
		b.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.CurrentPrimary == to })
	})
	primary := b.completes("of-the-primary")
	b.healthy(time.Minute)
	l.stopAndLoseNothing()
	b.areGood(replica, primary)
}

// areGood restores each of some backups beside the Cluster, with all that was archived after it, and
// compares the transactions and all tables.
func (b *backedUp) areGood(backups ...*v1alpha1.BackupStatus) {
	b.t.Helper()
	executed := b.archivesAll()
	for _, s := range backups {
		in := b.restored("good", b.store.Encrypted(), ", backupID: "+s.BackupID)
		b.holds(in, executed, b.checksums(b.open("rw")))
		b.kubectl("-n", b.key.Namespace, "wait", "--for=delete", "pod", "-l",
			v1alpha1.LabelCluster+"="+in.key.Name, "--timeout=2m")
		b.kubectl("-n", b.key.Namespace, "wait", "--for=delete", "pvc", "-l",
			v1alpha1.LabelCluster+"="+in.key.Name, "--timeout=2m")
	}
}

// donorIsRecreated: the data of the donor are thrown away while it is backed up. The backup is
// taken again once the donor serves, or fails and leaves nothing that looks like one; the next
// one completes.
func (b *backedUp) donorIsRecreated() {
	b.slowly(func() {
		b.backUp("recreated", "")
		b.plugin([]string{"reinit", b.key.Name, b.takes("recreated").InstanceName, "--yes"})
	})
	s := b.awaits("recreated", 5*time.Minute, func(s *v1alpha1.BackupStatus) bool {
		return s.Phase == v1alpha1.BackupCompleted || s.Phase == v1alpha1.BackupFailed
	})
	b.t.Logf("%s %s: %s", s.Phase, s.Reason, s.Error)
	if found := b.stored(s.BackupID, "manifest.json"); s.Phase == v1alpha1.BackupFailed && len(found) > 0 {
		b.t.Errorf("it failed, and there is %v", found)
	}
	b.healthy(3 * time.Minute)
	b.backUp("after-recreated", "")
	b.completes("after-recreated")
}

// checksums are those of all tables of the application.
func (b *backedUp) checksums(db *sql.DB) map[string]string {
	b.t.Helper()
	rows, err := db.QueryContext(b.ctx, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'app'")
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	out := map[string]string{}
	for rows.Next() {
		var table, of, sum string
		if err := rows.Scan(&table); err != nil {
			b.t.Fatal(err)
		}
		if err := db.QueryRowContext(b.ctx, "CHECKSUM TABLE app."+table).Scan(&of, &sum); err != nil {
			b.t.Fatal(err)
		}
		out[table] = sum
	}
	if err := rows.Err(); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// archivesAll waits until all that was written before is archived, and one row more, and returns
// what is executed then.
func (b *backedUp) archivesAll() string {
	b.t.Helper()
	b.sql("CREATE TABLE IF NOT EXISTS app.latest (id INT AUTO_INCREMENT PRIMARY KEY)")
	db := b.open("rw")
	before := mustParse(b.ask(db, "SELECT @@global.gtid_executed"))
	b.sql("INSERT INTO app.latest VALUES ()") // in a group, the last has not the highest number
	executed := b.ask(db, "SELECT @@global.gtid_executed")
	b.isArchived(mustParse(executed).Subtract(before).String())
	return executed
}

// restoredToLatest: a backup that is taken under load, and all that was archived after it, make a
// Cluster that has executed the same transactions, and has the same in all tables.
func (b *backedUp) restoredToLatest(objectStore string) {
	l := b.startWriting()
	b.backUp("for-latest", "")
	b.completes("for-latest")
	l.ackedAfter(time.Now().Add(time.Second), 20*time.Second)
	l.stopAndLoseNothing()
	executed := b.archivesAll()
	b.isRestored(executed, objectStore)
}

// isRestored: a restore to the latest makes a Cluster that has executed the same transactions as b,
// and has the same in all tables.
func (b *backedUp) isRestored(executed, objectStore string) {
	b.t.Helper()
	b.holds(b.restored("latest", objectStore, ""), executed, b.checksums(b.open("rw")))
}

// holds: a Cluster that was restored from b has executed these transactions, and has in all tables
// what is wanted; it is removed then.
func (b *backedUp) holds(in *world, executed string, wanted map[string]string) {
	b.t.Helper()
	restored := in.open("rw")
	own := mustParse(b.ask(restored, "SELECT @@global.gtid_executed")).Without(b.ask(restored, "SELECT @@server_uuid"))
	if !own.Equal(mustParse(executed)) {
		b.t.Errorf("restored is %s, and the source has %s", own, executed)
	}
	is := b.checksums(restored)
	if !maps.Equal(is, wanted) || len(wanted) < 2 {
		b.t.Errorf("restored are %v, and the source has %v", is, wanted)
	}
	b.t.Logf("the same in %d tables, at %s", len(wanted), executed)
	b.remove(in)
}
