package instance

import (
	"context"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// TestAReplicaThatIsBeingStoppedKeepsItsPromise: it waits for a client, and would receive and
// acknowledge meanwhile. Once it has promised to receive nothing below an epoch, it does not.
func TestAReplicaThatIsBeingStoppedKeepsItsPromise(t *testing.T) {
	w := newWorld(t, func(c *v1alpha1.Cluster) {
		quorum(c)
		c.Spec.SmartShutdownTimeout, c.Spec.MaxStopDelay = new(int32(25)), 60
	})
	_, two, db := w.acknowledged()
	reader, err := w.app(two).Conn(t.Context())
	must(t, err)
	defer func() { _ = reader.Close() }()
	must(t, reader.PingContext(t.Context()))

	two.m.terminate()
	w.await(two, "stopping", func(r core.Report) bool { return r.Reason == core.InstanceStopping })
	w.exec(db, "INSERT INTO t (v) VALUES (1)") // which it still acknowledges
	next := w.epoch() + 1
	r := w.order(two, control.ReceivePromise{Epoch: next})
	if r.Withheld == nil || r.Withheld.Below != next {
		t.Fatalf("it does not promise: %+v", r.Withheld)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := db.ExecContext(ctx, "INSERT INTO t (v) VALUES (2)"); err == nil {
		t.Error("a commit was acknowledged by a replica that had promised to receive nothing")
	}
	must(t, reader.Close())
}
