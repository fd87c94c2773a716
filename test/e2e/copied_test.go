//go:build e2e

package e2e

import (
	"maps"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// writtenServer is a server that is written to, and an account that may copy it and replicate from it. Here it is
// another Cluster's.
func writtenServer(t *testing.T) (*world, *backedUp, *load) {
	t.Helper()
	w := newWorld(t, "server")
	w.apply("\n  instances: 1\n  storage: {size: 1Gi}\n")
	w.healthy(2 * time.Minute)
	w.asRoot(w.primary(), "CREATE USER copier IDENTIFIED WITH caching_sha2_password BY 'copier-password' REQUIRE SSL; "+
		"GRANT BACKUP_ADMIN, REPLICATION SLAVE ON *.* TO copier")
	of := &backedUp{world: w}
	of.manifest("apiVersion: v1\nkind: Secret\nmetadata: {name: copier}\nstringData: {password: copier-password}\n")
	l := w.startWriting()
	l.ackedAfter(time.Now().Add(time.Second), 20*time.Second)
	return w, of, l
}

// asExternal is that server as the entry old of spec.externalClusters.
func (w *world) asExternal() string {
	return `  externalClusters:
  - name: old
    connectionParameters: {host: ` + w.key.Name + "-rw." + w.key.Namespace + `.svc, user: copier}
    password: {name: copier, key: password}
    sslRootCert: {name: ` + w.key.Name + `-ca, key: ca.crt}
`
}

// TestCopiedServer begins a Cluster under quorum with the data of a server that is written to meanwhile, and that
// is none of its instances: here it is another Cluster's.
func TestCopiedServer(t *testing.T) {
	onlyInAll(t)
	w, of, l := writtenServer(t)

	in := w.named("copied")
	in.apply(quorumSpec + `  bootstrap: {initdb: {database: app, owner: app}, recovery: {source: old}}
` + w.asExternal())
	c := in.healthy(4 * time.Minute)
	if r := c.Status.Restore; r == nil || r.Source != "old" || r.Stage != string(core.RestoreDone) {
		t.Errorf("the status says %+v of the copy", r)
	}
	l.stopAndLoseNothing()
	copied := of.rows(in.open("rw"))
	of.isBeginningOf(copied, of.rows(w.open("rw")))
	if count(copied) == 0 {
		t.Error("no row was copied")
	}
}

// TestFollowedServer has a cluster begin with a server's data, follow it under writes, lose its primary meanwhile,
// and take over with all that the server had acknowledged.
func TestFollowedServer(t *testing.T) {
	onlyInAll(t)
	w, of, l := writtenServer(t)

	in := w.named("followed")
	in.apply(quorumSpec + `  bootstrap: {initdb: {database: app, owner: app}, recovery: {source: old}}
  replica: {source: old}
` + w.asExternal())
	if c := in.healthy(4 * time.Minute); c.Status.Promotion.Follows != "old" ||
		c.Status.Diagnosis != string(core.PrimaryFollows) {
		t.Errorf("it is to follow the server, and its status says %+v", c.Status)
	}
	in.plugin([]string{"status", in.key.Name}, "follows old", "missing; it takes writes", "spec.replica.enabled")
	former := in.primary()
	in.deletePod(former)
	in.moved(former, time.Minute)
	in.healthy(time.Minute)
	if in.cluster().Status.Promotion.Follows != "old" {
		t.Error("whoever was promoted after the first follows nobody")
	}

	l.stopAndLoseNothing()
	in.kubectl("-n", in.key.Namespace, "patch", "cluster", in.key.Name, "--type=merge", "-p",
		`{"spec":{"replica":{"enabled":false}}}`)
	began := time.Now()
	in.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.Promotion.Follows == "" && c.Status.Diagnosis == string(core.PrimaryHealthy)
	})
	t.Logf("it took over within %s", time.Since(began).Round(100*time.Millisecond))
	in.durable(time.Minute)
	old, taken := w.open("rw"), in.open("rw")
	if lacks := mustParse(w.ask(old, executedText)).Subtract(mustParse(in.ask(taken, executedText))); !lacks.IsEmpty() {
		t.Errorf("it took over without %s", lacks)
	}
	if is, was := of.checksums(taken), of.checksums(old); !maps.Equal(is, was) || len(was) == 0 {
		t.Errorf("its tables are %v, and the server's %v", is, was)
	}
	if _, err := taken.ExecContext(in.ctx, "CREATE TABLE app.own (id INT PRIMARY KEY)"); err != nil {
		t.Errorf("it took over, and takes no writes: %v", err)
	}
}

const executedText = "SELECT @@global.gtid_executed"
