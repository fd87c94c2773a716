//go:build e2e

package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"cnmsql.co/api/v1alpha1"
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
	w.apply(quorumSpec + "  backup: {objectStore: " + store.Spec() + "}\n")
	w.healthy(3 * time.Minute)
	b.playInTurn([]step{
		{"WaitsAndSaysForWhat", func(w *world) { (&backedUp{w, store}).waitsAndSaysForWhat() }, always},
		{"TakenUnderLoadAndRestored", func(w *world) { (&backedUp{w, store}).takenUnderLoadAndRestored() }, always},
	})
}

// manifest applies anything to the world's namespace.
func (b *backedUp) manifest(text string) {
	b.t.Helper()
	if out, err := bed.Kubectl(b.ctx, strings.NewReader(text), "-n", b.key.Namespace, "apply", "--server-side", "-f", "-"); err != nil {
		b.t.Fatal(err, out)
	}
}

// backUp creates a Backup of the world's Cluster.
func (b *backedUp) backUp(name, more string) {
	b.t.Helper()
	b.manifest(fmt.Sprintf("apiVersion: mysql.cnmsql.co/v1alpha1\nkind: Backup\nmetadata: {name: %s}\nspec:\n  cluster: {name: %s}\n%s", name, b.key.Name, more))
}

// awaits waits until a Backup is as wished.
func (b *backedUp) awaits(name string, within time.Duration, wished func(*v1alpha1.BackupStatus) bool) *v1alpha1.BackupStatus {
	b.t.Helper()
	var is v1alpha1.Backup
	err := wait.PollUntilContextTimeout(b.ctx, 200*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
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
	b.backUp("no-secret", "  objectStore: {bucket: other, region: us-east-1, credentials: {accessKeyId: {name: nowhere, key: id}, secretAccessKey: {name: nowhere, key: key}}}\n")
	s := b.awaits("no-secret", 20*time.Second, func(s *v1alpha1.BackupStatus) bool { return s.Phase == v1alpha1.BackupPending })
	b.says(s.Reason+" "+s.Error, "StoreSecretMissing", "nowhere", "create it")
	b.kubectl("-n", b.key.Namespace, "delete", "backup", "no-secret")
	b.backUp("no-bucket", "  objectStore: "+strings.Replace(b.store.Spec(), "bucket: "+testbed.Bucket, "bucket: other", 1)+"\n")
	s = b.awaits("no-bucket", time.Minute, func(s *v1alpha1.BackupStatus) bool { return s.Phase == v1alpha1.BackupFailed })
	b.says(s.Reason+" "+s.Error, "SnapshotFailed", "StoreNoBucket", "other")
}

func (b *backedUp) takenUnderLoadAndRestored() {
	before, err := gtid.Parse(b.ask(b.open("rw"), "SELECT @@global.gtid_executed"))
	if err != nil {
		b.t.Fatal(err)
	}
	l := b.startWriting()
	l.ackedAfter(time.Now().Add(time.Second), 20*time.Second)
	b.backUp("first", "")
	s := b.awaits("first", 2*time.Minute, func(s *v1alpha1.BackupStatus) bool { return s.Phase == v1alpha1.BackupCompleted || s.Phase == v1alpha1.BackupFailed })
	if s.Phase != v1alpha1.BackupCompleted || s.InstanceName == b.primary() || s.StoredSize == 0 || s.Size < s.StoredSize {
		b.t.Fatalf("%+v", s)
	}
	b.t.Logf("backup of %d bytes, %d stored, from %s, in %s", s.Size, s.StoredSize, s.InstanceName, s.StoppedAt.Sub(s.StartedAt.Time))
	l.ackedAfter(time.Now().Add(time.Second), 20*time.Second)
	l.stopAndLoseNothing()
	all := b.rows(b.open("rw"))

	// The Cluster, its Backups and its volumes are gone; the store is left.
	b.kubectl("-n", b.key.Namespace, "delete", "backup", "--all")
	b.kubectl("-n", b.key.Namespace, "delete", "cluster", b.key.Name)
	b.kubectl("-n", b.key.Namespace, "delete", "pvc", "--all", "--wait=false")
	b.kubectl("-n", b.key.Namespace, "wait", "--for=delete", "pod", "-l", v1alpha1.LabelCluster+"="+b.key.Name, "--timeout=2m")
	copied := &backedUp{&world{t: b.t, ctx: b.ctx, key: types.NamespacedName{Namespace: b.key.Namespace, Name: "copied"}}, b.store}
	copied.apply(quorumSpec + "  bootstrap: {recovery: {source: " + b.key.Name + "}}\n  externalClusters: [{name: " + b.key.Name + ", objectStore: " + b.store.Spec() + "}]\n")
	copied.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.Promotion != nil })
	copied.healthy(3 * time.Minute)
	db := copied.open("rw")
	executed, err := gtid.Parse(copied.ask(db, "SELECT @@global.gtid_executed"))
	if err != nil {
		b.t.Fatal(err)
	}
	restored := copied.rows(db)
	b.isBeginningOf(restored, all)
	// Each row is a transaction; the few others made the writer's table.
	written := executed.Intersect(mustParse(s.EndGTID)).Subtract(before).Count()
	if others := int(written) - count(restored); others < 1 || others > 20 || count(restored) == 0 || count(restored) >= count(all) {
		b.t.Errorf("there are %d rows of %d, and %d transactions of the backup: %s of %s to %s", count(restored), count(all), written, executed, s.BeginGTID, s.EndGTID)
	}
	if !executed.Contains(mustParse(s.BeginGTID)) {
		b.t.Errorf("executed is %s, and the backup holds %s", executed, s.BeginGTID)
	}
	out := copied.kubectl("-n", b.key.Namespace, "get", "secret", "copied-recovery", "--ignore-not-found")
	if out != "" {
		b.t.Errorf("the store's credentials are still there: %s", out)
	}
	l = copied.startWriting()
	l.ackedAfter(time.Now().Add(time.Second), 20*time.Second)
	l.stopAndLoseNothing()
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
	table := b.ask(db, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'app' ORDER BY create_time LIMIT 1")
	rows, err := db.QueryContext(b.ctx, "SELECT CONCAT(run, '/', conn), CONCAT_WS(' ', seq, HEX(payload), at) FROM app."+table+" ORDER BY run, conn, seq")
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

// isBeginningOf: what a connection wrote is there up to some row, and nothing else is.
func (b *backedUp) isBeginningOf(some, all map[string][]string) {
	b.t.Helper()
	for connection, rows := range some {
		if len(rows) > len(all[connection]) || !slices.Equal(rows, all[connection][:len(rows)]) {
			b.t.Errorf("connection %s: the %d rows are not the first of the %d that were written", connection, len(rows), len(all[connection]))
		}
	}
}

func count(rows map[string][]string) (n int) {
	for _, of := range rows {
		n += len(of)
	}
	return n
}
