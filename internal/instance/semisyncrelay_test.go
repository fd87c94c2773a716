package instance

import (
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// semiSync has commits wait for acknowledgements under a mode that does so for a while only.
func semiSync(mode string) func(*v1alpha1.Cluster) {
	return func(c *v1alpha1.Cluster) {
		c.Spec.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{Enabled: true, DataDurability: mode}
	}
}

// TestWhatAReplicaAcknowledgedOutlivesItsMysqld: the primary is gone, and the rows that it was
// acknowledged are in the relay log of a replica that had not applied them when its mysqld was killed.
func TestWhatAReplicaAcknowledgedOutlivesItsMysqld(t *testing.T) {
	for _, mode := range []string{v1alpha1.DurabilityPreferred, v1alpha1.DurabilityRequired} {
		t.Run(mode, func(t *testing.T) {
			if mode == v1alpha1.DurabilityRequired {
				inAll(t)
			}
			const rows = 20
			w := newWorld(t, semiSync(mode))
			one, two, db := w.acknowledged()
			holds, err := two.m.root.DB().Conn(t.Context())
			must(t, err)
			_, err = holds.ExecContext(t.Context(), "LOCK TABLES app_db.t READ") // the applier waits
			must(t, err)
			before := w.executed(two)
			for range rows {
				w.exec(db, "INSERT INTO t (v) VALUES (1)")
			}
			written, err := one.m.roles.Executed(t.Context())
			must(t, err)
			replica := w.await(two, "holding what it acknowledged", func(r core.Report) bool {
				return r.Server != nil && r.Server.Holds().Contains(written)
			})
			if !replica.Server.Executed.Equal(before) || !w.answers(one).Server.SemiSync.SourceActive {
				t.Fatalf("the replica has applied it, or the primary did not wait: %+v", replica.Server)
			}
			w.crashManager(one)
			w.crashManager(two)
			_ = holds.Close()

			two = w.start(2)
			w.awaitPrimary(two, w.grant("db-2", core.ProofPodTerminated, "db-1", "", 0))
			var has int
			must(t, w.app(two).QueryRow("SELECT COUNT(*) FROM t").Scan(&has))
			if has != rows {
				t.Errorf("of %d acknowledged rows the new primary has %d", rows, has)
			}
		})
	}
}
