//go:build e2e

package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/test/testbed"
)

// backedUp is a cluster whose backups go to a store that outlives it.
type backedUp struct {
	*world
	store *testbed.ObjectStore
}

// TestBackup backs a cluster up while it is written to, loses all of it, and restores it
// from what is in the store.
func TestBackup(t *testing.T) {
	w := newWorld(t, "backup")
	elsewhere := newWorld(t, "store")
	store, err := bed.StartObjectStore(w.ctx, elsewhere.key.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	b := &backedUp{world: w, store: store}
	b.manifest(store.Credentials(w.key.Namespace))
	w.apply(quorumSpec + "  backup: {objectStore: " + store.Encrypted() + ", continuousArchiving: {enabled: true, " +
		"targetRPOSeconds: 1}, retentionPolicy: 1d}\n")
	w.healthy(3 * time.Minute)
	b.playInTurn([]step{
		{"WaitsAndSaysForWhat", func(w *world) { (&backedUp{w, store}).waitsAndSaysForWhat() }, always, three},
		{"ArchivedInTime", func(w *world) { (&backedUp{w, store}).archivedInTime() }, inAll, three},
		{"JobAndOperatorKilled", func(w *world) { (&backedUp{w, store}).jobAndOperatorKilled() }, inAll, three},
		{"DonorChangesRole", func(w *world) { (&backedUp{w, store}).donorChangesRole() }, inAll, three},
		{"DonorIsRecreated", func(w *world) { (&backedUp{w, store}).donorIsRecreated() }, inAll, three},
		{"StoreHangs", func(w *world) { (&backedUp{w, store}).storeHangs() }, inAll, three},
		{"LogsPurgedByHand", func(w *world) { (&backedUp{w, store}).logsPurgedByHand() }, inAll, three},
		{"DeletedWithItsData", func(w *world) { (&backedUp{w, store}).deletedWithItsData() }, always, three},
		{"VerifiedAlthoughTheOperatorIsKilled", func(w *world) { (&backedUp{w, store}).verified() }, always, three},
		{"SmallPartsAreMerged", func(w *world) { (&backedUp{w, store}).smallPartsAreMerged() }, inAll, three},
		{"RestoredToLatest", func(w *world) { (&backedUp{w, store}).restoredToLatest(store.Encrypted()) },
			inAll, three},
		{"AskedByPlugin", func(w *world) { (&backedUp{w, store}).askedByPlugin() }, inAll, three},
		{"ScheduledAndRestoredByName", func(w *world) { (&backedUp{w, store}).scheduledAndRestoredByName() },
			inAll, three},
		{"RestoredToATime", func(w *world) { (&backedUp{w, store}).restoredToATime() }, inAll, three},
		{"RestoredToBeforeTheTableWasDropped", func(w *world) { (&backedUp{w, store}).restoredToBeforeTheDrop() },
			always, three},
		{"GroupRestoredToATime", func(w *world) {
			(&backedUp{w.named("copied"), store}).groupRestoredToATime()
		}, inAll, thoseBefore},
		{"GroupRestoredToLatest", func(w *world) {
			(&backedUp{w.named("copied"), store}).restoredToLatest(store.Spec())
		}, inAll, thoseBefore},
		{"GroupGivesNumbersAgain", func(w *world) {
			(&backedUp{w.named("copied"), store}).groupGivesNumbersAgain()
		}, inAll, thoseBefore},
		{"ArchiveGoesWithItsCluster", func(w *world) { (&backedUp{w.named("copied"), store}).archiveGoes() },
			always, thoseBefore},
	})
}

// manifest applies anything to the world's namespace.
func (b *backedUp) manifest(text string) {
	b.t.Helper()
	if out, err := bed.Kubectl(b.ctx, strings.NewReader(text), "-n", b.key.Namespace, "apply", "--server-side",
		"-f", "-"); err != nil {
		b.t.Fatal(err, out)
	}
}

// backUp creates a Backup of the world's Cluster.
func (b *backedUp) backUp(name, more string) {
	b.t.Helper()
	b.manifest(fmt.Sprintf("apiVersion: mysql.cnmsql.co/v1alpha1\nkind: Backup\nmetadata: {name: %s}\nspec:\n  "+
		"cluster: {name: %s}\n%s", name, b.key.Name, more))
}

// awaits waits until a Backup is as wished.
func (b *backedUp) awaits(name string, within time.Duration,
	wished func(*v1alpha1.BackupStatus) bool) *v1alpha1.BackupStatus {
	b.t.Helper()
	var is v1alpha1.Backup
	err := wait.PollUntilContextTimeout(b.ctx, 200*time.Millisecond, within, true,
		func(ctx context.Context) (bool, error) {
			err := bed.Client.Get(ctx, types.NamespacedName{Namespace: b.key.Namespace, Name: name}, &is)
			return err == nil && wished(&is.Status), err
		})
	if err != nil {
		b.t.Log(b.kubectl("-n", b.key.Namespace, "get", "backup,job,pod", "-o", "wide"))
		b.t.Fatalf("Backup %s is not as wished: %v: %+v", name, err, is.Status)
	}
	return &is.Status
}

func (b *backedUp) waitsAndSaysForWhat() {
	b.backUp("no-secret", "  objectStore: {bucket: other, region: us-east-1, credentials: {accessKeyId: {name: "+
		"nowhere, key: id}, secretAccessKey: {name: nowhere, key: key}}}\n")
	s := b.awaits("no-secret", 20*time.Second, func(s *v1alpha1.BackupStatus) bool {
		return s.Phase == v1alpha1.BackupPending
	})
	b.says(s.Reason+" "+s.Error, "StoreSecretMissing", "nowhere", "create it")
	b.kubectl("-n", b.key.Namespace, "delete", "backup", "no-secret")
	b.backUp("no-bucket", "  objectStore: "+strings.Replace(b.store.Spec(), "bucket: "+testbed.Bucket,
		"bucket: other", 1)+"\n")
	s = b.awaits("no-bucket", time.Minute, func(s *v1alpha1.BackupStatus) bool {
		return s.Phase == v1alpha1.BackupFailed
	})
	b.says(s.Reason+" "+s.Error, "SnapshotFailed", "StoreNoBucket", "other")
}

// jobAndOperatorKilled: the backup starts again in another Pod, and is one in the end.
func (b *backedUp) jobAndOperatorKilled() {
	l := b.startWriting()
	b.slowly(func() {
		b.backUp("killed", "")
		b.takes("killed")
		b.kubectl("-n", b.key.Namespace, "delete", "pod", "-l", v1alpha1.LabelBackup+"=killed",
			"--grace-period=0", "--force")
		b.killOperator()
	})
	s := b.completes("killed")
	b.healthy(time.Minute)
	l.stopAndLoseNothing()
	b.areGood(s)
}

// deletedWithItsData: of two backups one goes, and all that it has in the store. Nothing has
// expired after either.
func (b *backedUp) deletedWithItsData() {
	b.backUp("goes", "  reclaimPolicy: Delete\n")
	goes := b.completes("goes")
	b.backUp("stays", "")
	stays := b.completes("stays")
	s := b.awaits("stays", time.Minute, func(s *v1alpha1.BackupStatus) bool { return s.Retention != nil })
	if held := s.Retention.Held; held == nil || held.Reason != "NoBackupOldEnough" ||
		len(s.Retention.RemovedBackups) > 0 {
		b.t.Errorf("%+v", s.Retention)
	}
	if parts := b.stored(goes.BackupID, "part-*.zst.age"); len(parts) == 0 || goes.EncryptedTo == "" {
		b.t.Errorf("it is not encrypted: %v, %q", parts, goes.EncryptedTo)
	}
	b.kubectl("-n", b.key.Namespace, "delete", "backup", "goes", "--timeout=1m")
	if left := b.stored(goes.BackupID, "*"); len(left) > 0 {
		b.t.Errorf("still in the store: %v", left)
	}
	if left := b.stored(stays.BackupID, "manifest.json"); len(left) != 1 {
		b.t.Errorf("the other backup has lost its manifest: %v", left)
	}
}

// stored are the objects of a backup.
func (b *backedUp) stored(id, pattern string) []string {
	b.t.Helper()
	return b.below("base/" + id + "/" + pattern)
}

// below are the objects of the archive, by the directory in which the store keeps them.
func (b *backedUp) below(pattern string) []string {
	b.t.Helper()
	path, err := bed.StorePath(b.ctx, b.store, "/data/"+testbed.Bucket+"/some/path/"+b.key.Name+"/"+pattern)
	if err != nil {
		b.t.Fatal(err)
	}
	found, err := filepath.Glob(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// completes waits until a Backup is complete.
func (b *backedUp) completes(name string) *v1alpha1.BackupStatus {
	b.t.Helper()
	s := b.awaits(name, 2*time.Minute, func(s *v1alpha1.BackupStatus) bool {
		return s.Phase == v1alpha1.BackupCompleted || s.Phase == v1alpha1.BackupFailed
	})
	if s.Phase != v1alpha1.BackupCompleted {
		b.t.Fatalf("%s: %+v", name, s)
	}
	return s
}

// verified: the newest backup is restored into a throw-away Cluster, checked, and compared with
// a replica, and nothing is left of it. The cluster takes writes meanwhile.
func (b *backedUp) verified() {
	for _, statement := range []string{"CREATE TABLE app.quiet (id INT PRIMARY KEY, v TEXT)",
		"INSERT INTO app.quiet VALUES (1, 'a'), (2, NULL)"} {
		if _, err := b.open("rw").ExecContext(b.ctx, statement); err != nil {
			b.t.Fatal(err)
		}
	}
	l := b.startWriting()
	b.kubectl("-n", b.key.Namespace, "annotate", "cluster", b.key.Name, v1alpha1.AnnotationVerify+"=e2e")
	of := func(wished func(*v1alpha1.VerificationStatus) bool) *v1alpha1.VerificationStatus {
		return b.becomes(5*time.Minute, func(c *v1alpha1.Cluster) bool {
			s := c.Status.LastVerification
			return s != nil && s.Request == "e2e" && wished(s)
		}).Status.LastVerification
	}
	of(func(s *v1alpha1.VerificationStatus) bool { return s.ClusterUID != "" })
	b.killLeader()
	s := of(func(s *v1alpha1.VerificationStatus) bool { return s.EndedAt != nil && s.ClusterUID == "" })
	b.says(s.Phase+" "+s.Reason+" "+s.Message, v1alpha1.VerificationSucceeded, "tables are sound")
	if s.BackupID == "" || s.RestoreSeconds < 1 || s.RestoreSeconds > 300 || s.Tables < 20 ||
		s.TablesChecked != s.Tables || s.TablesCompared < 1 {
		b.t.Errorf("%+v", s)
	}
	if c := b.cluster(); !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionBackupsVerified) {
		b.t.Errorf("%+v", c.Status.Conditions)
	}
	b.t.Logf("restored in %d s to %s, compared %d of %d tables", s.RestoreSeconds, s.RestoredTo,
		s.TablesCompared, s.Tables)
	l.stopAndLoseNothing()
	for _, kind := range []string{"pod", "pvc", "service", "secret"} {
		b.kubectl("-n", b.key.Namespace, "wait", "--for=delete", kind, "-l", v1alpha1.LabelCluster+"="+b.key.Name+
			"-verify", "--timeout=2m")
	}
	b.healthy(time.Minute)
}

// restoredToBeforeTheDrop: a backup is taken under load, the primary changes, more is
// written, and a table is dropped by mistake. Then all is lost but the store.
func (b *backedUp) restoredToBeforeTheDrop() {
	l := b.startWriting()
	l.ackedAfter(time.Now().Add(time.Second), 20*time.Second)
	b.backUp("first", "  jobTemplate: {resources: {limits: {memory: 256Mi}}}\n")
	s := b.completes("first")
	if s.InstanceName == b.primary() || s.StoredSize == 0 || s.Size < s.StoredSize {
		b.t.Fatalf("%+v", s)
	}
	b.t.Logf("backup of %d bytes, %d stored, from %s, in %s", s.Size, s.StoredSize, s.InstanceName,
		s.StoppedAt.Sub(s.StartedAt.Time))
	old := b.primary()
	at := b.killMysqld(old)
	b.moved(old, 30*time.Second)
	l.ackedAfter(at.Add(time.Second), 30*time.Second)
	l.stopAndLoseNothing()
	b.healthy(time.Minute)
	db := b.open("rw")
	all, before := b.rows(db), mustParse(b.ask(db, "SELECT @@global.gtid_executed"))
	if _, err := db.ExecContext(b.ctx, "DROP TABLE app."+b.table(db)); err != nil {
		b.t.Fatal(err)
	}
	drop := mustParse(b.ask(db, "SELECT @@global.gtid_executed")).Subtract(before).String()
	dropped := time.Now()
	b.isArchived(drop)
	b.t.Logf("%s was archived within %s", drop, time.Since(dropped))
	b.becomes(20*time.Second, func(c *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
	})

	b.loseAll()
	copied := &backedUp{b.named("copied"), b.store}
	begun := time.Now()
	copied.apply(groupSpec + "  backup: {compression: none, objectStore: " + b.store.Spec() +
		", continuousArchiving: {enabled: true, targetRPOSeconds: 1}}\n" +
		"  bootstrap: {recovery: {source: " + b.key.Name + ", recoveryTarget: {targetGTID: '" + drop +
		"', exclusive: true}}}\n" +
		"  externalClusters: [{name: " + b.key.Name + ", objectStore: " + b.store.Encrypted() + "}]\n")
	copied.healthy(4 * time.Minute)
	b.t.Logf("apply to three members with the restored data: %s", time.Since(begun))
	db = copied.open("rw")
	restored := copied.rows(db)
	b.isBeginningOf(restored, all)
	if count(restored) != count(all) || count(all) == 0 {
		b.t.Errorf("there are %d rows of %d", count(restored), count(all))
	}
	if executed := mustParse(copied.ask(db, "SELECT @@global.gtid_executed")); !executed.Contains(before) ||
		executed.Contains(mustParse(drop)) {
		b.t.Errorf("executed is %s; wanted all of %s, and not %s", executed, before, drop)
	}
	if out := copied.kubectl("-n", b.key.Namespace, "get", "secret", "copied-recovery",
		"--ignore-not-found"); out != "" {
		b.t.Errorf("the store's credentials are still there: %s", out)
	}
}

// groupArchives: whoever the group elects goes on with the archive.
func (b *backedUp) groupArchives() {
	l := b.startWriting()
	l.ackedAfter(time.Now().Add(time.Second), 20*time.Second)
	old := b.primary()
	at := b.killMysqld(old)
	l.ackedAfter(at.Add(time.Second), 30*time.Second)
	b.becomes(30*time.Second, func(c *v1alpha1.Cluster) bool { return c.Status.CurrentPrimary != old })
	l.ackedAfter(time.Now().Add(time.Second), 20*time.Second)
	l.stopAndLoseNothing()
	b.healthy(2 * time.Minute)
	b.archivesAll()
	b.becomes(20*time.Second, func(c *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving) &&
			c.Status.ContinuousArchiving.Missing == ""
	})
}

// isArchived waits until the primary says that it has archived a transaction last.
func (b *backedUp) isArchived(gtids string) {
	b.t.Helper()
	primary, said := b.primary(), ""
	err := wait.PollUntilContextTimeout(b.ctx, 100*time.Millisecond, 20*time.Second, true,
		func(ctx context.Context) (bool, error) {
			var err error
			said, err = bed.Kubectl(ctx, nil, "-n", b.key.Namespace, "exec", primary, "-c", "mysql", "--",
				"/opt/cnmsql/bin/cnmsql", "instance", "status")
			var snap control.Snapshot
			if err != nil || json.Unmarshal([]byte(said), &snap) != nil || snap.Report.Archive == nil {
				return false, err
			}
			last, err := gtid.Parse(snap.Report.Archive.GTIDs)
			return err == nil && last.Contains(mustParse(gtids)), nil
		})
	if err != nil {
		b.t.Fatalf("%s was not archived: %v: %s", gtids, err, said)
	}
}

// loseAll: the Cluster, its Backups and its volumes are gone; the store is left.
func (b *backedUp) loseAll() {
	b.t.Helper()
	b.kubectl("-n", b.key.Namespace, "delete", "backup", "--all")
	b.kubectl("-n", b.key.Namespace, "delete", "cluster", b.key.Name)
	b.kubectl("-n", b.key.Namespace, "delete", "pvc", "--all", "--wait=false")
	b.kubectl("-n", b.key.Namespace, "wait", "--for=delete", "pod", "-l", v1alpha1.LabelCluster+"="+
		b.key.Name, "--timeout=2m")
}

func mustParse(text string) gtid.Set {
	set, err := gtid.Parse(text)
	if err != nil {
		panic(err)
	}
	return set
}

// rows are the writer's, of each connection in the order in which they were written.
func (b *backedUp) rows(db *sql.DB) map[string][]string {
	b.t.Helper()
	out := map[string][]string{}
	rows, err := db.QueryContext(b.ctx,
		"SELECT CONCAT(run, '/', conn), CONCAT_WS(' ', seq, HEX(payload), at) FROM app."+b.table(db)+
			" ORDER BY run, conn, seq")
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var connection, row string
		if err := rows.Scan(&connection, &row); err != nil {
			b.t.Fatal(err)
		}
		out[connection] = append(out[connection], row)
	}
	if err := rows.Err(); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// table is the writer's.
func (b *backedUp) table(db *sql.DB) string {
	b.t.Helper()
	return b.ask(db, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'app' AND table_name "+
		"LIKE 'writer%'")
}

// isBeginningOf: what a connection wrote is there up to some row, and nothing else is.
func (b *backedUp) isBeginningOf(some, all map[string][]string) {
	b.t.Helper()
	for connection, rows := range some {
		if len(rows) > len(all[connection]) || !slices.Equal(rows, all[connection][:len(rows)]) {
			b.t.Errorf("connection %s: the %d rows are not the first of the %d that were written", connection,
				len(rows), len(all[connection]))
		}
	}
}

func count(rows map[string][]string) (n int) {
	for _, of := range rows {
		n += len(of)
	}
	return n
}
