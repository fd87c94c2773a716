//go:build e2e

package e2e

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"cnmsql.co/test/testbed"
	"cnmsql.co/test/writer"
)

// TestTableDroppedAndNamespaceLost: a table is dropped by mistake while it is written to as fast
// as the cluster can, and then the whole namespace goes. What is left is the store.
func TestTableDroppedAndNamespaceLost(t *testing.T) {
	onlyInAll(t)
	t.Run("Quorum", func(t *testing.T) { droppedAndLost(t, "dropped", quorumSpec, 500) })
	t.Run("Group", func(t *testing.T) { droppedAndLost(t, "dropped-group", groupSpec, 150) })
}

// droppedAndLost plays it with a Cluster that acknowledges at least rate rows a second.
func droppedAndLost(t *testing.T, name, spec string, rate float64) {
	w, elsewhere := newWorld(t, name), newWorld(t, name+"-store")
	store, err := bed.StartObjectStore(w.ctx, elsewhere.key.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	b := &backedUp{w, store}
	b.manifest(store.Credentials(w.key.Namespace))
	b.apply(spec + "  backup: {objectStore: " + store.Encrypted() + ", continuousArchiving: {enabled: true, " +
		"targetRPOSeconds: 1}}\n")
	b.healthy(3 * time.Minute)
	b.backUp("before", "")
	b.completes("before")
	l := b.startWritingAtFullSpeed(64)
	b.writesAtLeast(l, rate)
	b.sql("DROP TABLE app." + b.table(b.open("rw")))
	l.Stop()
	drop := b.dropped()
	b.isArchived(drop)
	b.kubectl("delete", "namespace", b.key.Namespace, "--wait=true", "--timeout=5m")

	in := &backedUp{newWorld(t, name+"-regained"), store}
	in.manifest(store.Credentials(in.key.Namespace))
	in.apply("\n  instances: 1\n  storage: {size: 1Gi}\n" +
		"  bootstrap: {recovery: {source: " + name + ", recoveryTarget: {targetGTID: '" + drop +
		"', exclusive: true}}}\n" +
		"  externalClusters: [{name: " + name + ", objectStore: " + store.Encrypted() + "}]\n")
	in.healthy(4 * time.Minute)
	in.holdsAllOf(l)
	t.Logf("%d rows were acknowledged before %s, and are there", l.Snapshot().Acknowledged, drop)
}

// holdsAllOf: what was acknowledged is there, and nothing that was not written.
func (b *backedUp) holdsAllOf(l *load) {
	b.t.Helper()
	v, err := l.VerifyWithin(b.ctx, b.open("rw"), time.Minute)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(v.Missing) > 0 || len(v.Extra) > 0 {
		b.t.Errorf("%d of the acknowledged rows are missing, and %d are there that were not written", len(v.Missing),
			len(v.Extra))
	}
}

// startWritingAtFullSpeed writes on that many connections without a pause.
func (w *world) startWritingAtFullSpeed(connections int) *load {
	w.t.Helper()
	return w.startWriter(func(e testbed.Endpoint) *writer.Writer { return e.WriterAtFullSpeed(connections) })
}

// writesAtLeast: so many rows a second are acknowledged.
func (b *backedUp) writesAtLeast(l *load, rate float64) {
	b.t.Helper()
	before := l.Snapshot()
	l.ackedAfter(before.At.Add(10*time.Second), time.Minute)
	after := l.Snapshot()
	is := float64(after.Acknowledged-before.Acknowledged) / after.At.Sub(before.At).Seconds()
	b.t.Logf("%.0f rows a second", is)
	if is < rate {
		b.t.Errorf("%.0f rows a second were written; %.0f are wanted", is, rate)
	}
}

var gtidNext = regexp.MustCompile(`GTID_NEXT= '([^']+)'`)

// dropped is the transaction that dropped a table, found as docs/restore.md says.
func (b *backedUp) dropped() string {
	b.t.Helper()
	primary := b.primary()
	log := strings.Fields(b.asRoot(primary, "SHOW BINARY LOG STATUS"))[0]
	dir := strings.TrimSpace(b.asRoot(primary, "SELECT @@log_bin_basename"))
	dir = dir[:strings.LastIndex(dir, "/")+1]
	text := b.kubectl("-n", b.key.Namespace, "exec", primary, "-c", "mysql", "--", "mysqlbinlog",
		"--base64-output=decode-rows", "-v", dir+log)
	before, _, found := strings.Cut(text, "DROP TABLE")
	ids := gtidNext.FindAllStringSubmatch(before, -1)
	if !found || len(ids) == 0 {
		b.t.Fatalf("%s has no DROP TABLE", log)
	}
	return ids[len(ids)-1][1]
}
