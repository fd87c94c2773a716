//go:build e2e

package e2e

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// TestCopiedServer begins a Cluster under quorum with the data of a server that is written to meanwhile, and that
// is none of its instances: here it is another Cluster's.
func TestCopiedServer(t *testing.T) {
	onlyInAll(t)
	w := newWorld(t, "server")
	w.apply("\n  instances: 1\n  storage: {size: 1Gi}\n")
	w.healthy(2 * time.Minute)
	w.asRoot(w.primary(), "CREATE USER copier IDENTIFIED WITH caching_sha2_password BY 'copier-password' REQUIRE SSL; "+
		"GRANT BACKUP_ADMIN ON *.* TO copier")
	of := &backedUp{world: w}
	of.manifest("apiVersion: v1\nkind: Secret\nmetadata: {name: copier}\nstringData: {password: copier-password}\n")
	l := w.startWriting()
	l.ackedAfter(time.Now().Add(time.Second), 20*time.Second)

	in := w.named("copied")
	in.apply(quorumSpec + `  bootstrap: {initdb: {database: app, owner: app}, recovery: {source: old}}
  externalClusters:
  - name: old
    connectionParameters: {host: ` + w.key.Name + "-rw." + w.key.Namespace + `.svc, user: copier}
    password: {name: copier, key: password}
    sslRootCert: {name: ` + w.key.Name + `-ca, key: ca.crt}
`)
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
