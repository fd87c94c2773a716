//go:build e2e

package e2e

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/test/testbed"
)

// waitsForNobody is a Cluster whose commits wait for no replica.
const waitsForNobody = `
  instances: 3
  affinity: {podAntiAffinityType: required}
  storage: {size: 1Gi}
`

// lostRows is how many rows the cut-off primary acknowledges, each in a transaction of its own.
const lostRows = 5

// TestLostBranch shows what a failover under asynchronous replication loses, and where that stays. The
// primary is cut off from everybody but its clients and the object store, so that it archives what no
// replica has. The plugin lists exactly that and writes it as a binary log, a restore to the latest has
// none of it, and one to a lost transaction is refused.
func TestLostBranch(t *testing.T) {
	onlyInAll(t)
	w, elsewhere := newWorld(t, "lost"), newWorld(t, "lost-store")
	b := &backedUp{w, elsewhere.storeAwayFromOperator()}
	b.manifest(b.store.Credentials(w.key.Namespace))
	b.apply(waitsForNobody + "  backup: {objectStore: " + b.store.Spec() + ", continuousArchiving: {enabled: true, " +
		"targetRPOSeconds: 1}}\n")
	b.healthy(3 * time.Minute)
	b.sql("CREATE TABLE app.branches (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20))")
	b.sql("INSERT INTO app.branches (what) VALUES ('common')")
	b.backUp("before", "")
	b.completes("before")
	b.beside(elsewhere.pod("s3"))
	b.caughtUpWith(b.archivesAll())

	old := b.primary()
	lost, last := b.failsOverWithout(old)
	b.sql("INSERT INTO app.branches (what) VALUES ('kept')")
	b.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool { // nobody but the former primary reaches the store
		return !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
	})
	b.fault("heal", b.pod(old).Spec.NodeName)
	b.becomes(3*time.Minute, func(c *v1alpha1.Cluster) bool {
		return slices.Contains(c.Status.DivergedInstances, old)
	})
	b.archives(metav1.ConditionTrue, 4*time.Minute)
	executed := b.archivesAll()

	if all := b.lostBranches(); len(all) != 1 || all[0][1] != old {
		t.Errorf("one branch was lost, that of %s, and it lists %v", old, all)
	}
	b.showsRows(b.showsLost(lost))
	in := b.restored("latest", b.store.Spec(), "")
	what := b.ask(in.open("rw"), "SELECT GROUP_CONCAT(what ORDER BY id) FROM app.branches")
	if what != "common,kept" {
		t.Errorf("restored to the latest, it has %s", what)
	}
	b.holds(in, executed, b.checksums(b.open("rw")))
	b.restoring("to-lost", b.store.Spec(), ", recoveryTarget: {targetGTID: '"+last.String()+"'}").troubled("TargetLost")
}

// storeAwayFromOperator starts an object store in the world's namespace, on another node than that of the
// operator that leads: who is cut off with the store is not cut off with the operator.
func (w *world) storeAwayFromOperator() *testbed.ObjectStore {
	w.t.Helper()
	node := w.leader().Spec.NodeName
	w.kubectl("cordon", node)
	store, err := bed.StartObjectStore(w.ctx, w.key.Namespace)
	w.kubectl("uncordon", node)
	if err != nil {
		w.t.Fatal(err)
	}
	return store
}

// failsOverWithout cuts the primary off, and returns when another takes writes: lost are the transactions
// that clients were told are committed, and that are archived, but that the other does not have.
func (b *backedUp) failsOverWithout(old string) (lost, last gtid.Set) {
	b.t.Helper()
	node, direct := b.pod(old).Spec.NodeName, b.openInstance(old)
	if at := b.leader().Spec.NodeName; at == node {
		b.t.Fatalf("the operator leads on %s, which is to be cut off", at)
	}
	common := mustParse(b.ask(direct, executedText))
	b.fault("partition", node+" --from nodes") // and not yet from the API server, by which it is asked what is archived
	all, last := b.acknowledges(direct)
	b.isArchived(last.String())
	b.fault("partition", node+" --from api")
	at := time.Now()
	c := b.becomes(90*time.Second, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary != old && c.Status.Diagnosis == string(core.PrimaryHealthy)
	})
	in := c.Status.CurrentPrimary
	b.t.Logf("%s takes writes %s after the API server was out of reach, by %s", in,
		time.Since(at).Round(100*time.Millisecond), c.Status.Promotion.Proof)
	b.waitRouted("rw", in, true)
	lost = all.Subtract(common)
	has := mustParse(b.ask(b.openInstance(in), executedText))
	if lacks := all.Subtract(has); !lacks.Equal(lost) || lost.Count() != lostRows {
		b.t.Errorf("%s acknowledged %s while it was cut off, and %s lacks %s", old, lost, in, lacks)
	}
	return lost, last
}

// acknowledges writes rows, and tells what is executed after that, and the last transaction.
func (b *backedUp) acknowledges(db *sql.DB) (all, last gtid.Set) {
	b.t.Helper()
	for i := range lostRows {
		before := mustParse(b.ask(db, executedText))
		if _, err := db.ExecContext(b.ctx, "INSERT INTO app.branches (what) VALUES (?)", lostRow(i)); err != nil {
			b.t.Fatal(err)
		}
		all = mustParse(b.ask(db, executedText))
		last = all.Subtract(before)
	}
	return all, last
}

func lostRow(i int) string { return fmt.Sprintf("lost %d", i+1) }

// showsRows reads such a log by mysqlbinlog, as the documents say. An instance's image has it here.
func (b *backedUp) showsRows(file string) {
	b.t.Helper()
	log, err := os.Open(file)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	text, err := bed.Kubectl(b.ctx, log, "-n", b.key.Namespace, "exec", "-i", b.primary(), "-c", "mysql", "--",
		"mysqlbinlog", "--base64-output=decode-rows", "-v", "-")
	if err != nil {
		b.t.Fatal(err)
	}
	words := []string{"INSERT INTO `app`.`branches`"}
	for i := range lostRows {
		words = append(words, "'"+lostRow(i)+"'")
	}
	b.says(text, words...)
	for _, survived := range []string{"'common'", "'kept'"} {
		if strings.Contains(text, survived) {
			b.t.Errorf("it has %s, which was not lost", survived)
		}
	}
}
