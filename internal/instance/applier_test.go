package instance

import (
	"testing"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/mysql"
)

// An instance that was about to be the primary again when another was promoted waits for
// acknowledgements, and its applier's commits wait with it.
func TestAnApplierThatWaitsForAcknowledgementsGoesOn(t *testing.T) {
	w := newWorld(t, quorum)
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	db := w.app(one)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)")
	w.join(two, one)
	w.order(one, control.SetAcks{Epoch: w.epoch(), Acks: 1})
	holds, err := two.m.root.DB().Conn(t.Context())
	must(t, err)
	defer holds.Close()
	_, err = holds.ExecContext(t.Context(), "LOCK TABLES app_db.t READ")
	must(t, err)
	w.exec(db, "INSERT INTO t () VALUES ()")
	// The applier commits before the manager looks again whether anybody is waited for.
	must(t, two.m.roles.RequireAcks(t.Context(), 1, mysql.Forever))
	_, err = holds.ExecContext(t.Context(), "UNLOCK TABLES")
	must(t, err)
	written, err := one.m.roles.Executed(t.Context())
	must(t, err)
	w.await(two, "applied", func(r core.Report) bool { return r.Server != nil && r.Server.Executed.Contains(written) })
	waitsForNobody := func(r core.Report) bool { return r.Server != nil && !r.Server.SemiSync.SourceEnabled }
	w.await(two, "waiting for nobody", waitsForNobody)
}
