package instance

import (
	"context"
	"fmt"
	"os"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/restore"
)

// runningServer is a server that is none of the cluster's instances, and whose data are copied.
type runningServer struct {
	*restorer
	name  string
	donor clone.Donor
	// bytes are how many were copied.
	bytes int64
}

// write copies its files as they are at one moment, while it goes on.
func (r *runningServer) write(ctx context.Context, _ *v1alpha1.Cluster, root *os.Root) error {
	r.log.Info("this instance copies the data of a running server",
		"externalCluster", r.name, "address", r.donor.Address)
	began := time.Now()
	tell := func(done, expected int64) {
		r.bytes = done
		r.writtenFiles(&core.Restore{Source: r.name, Stage: core.RestoreCopy}, done, expected, began)
	}
	tell(0, 0)
	if err := restore.Copy(ctx, r.donor, root, r.launcher.version().String(), tell); err != nil {
		return fmt.Errorf("copying the data of %s, of spec.externalClusters: %w", r.name, err)
	}
	r.log.Info("the files of the running server are copied",
		"after", time.Since(began).Round(time.Millisecond).String())
	return nil
}

// replay finds nothing to replay: what the server commits after the copy stays there alone.
func (r *runningServer) replay(ctx context.Context) error {
	holds, err := r.root().Executed(ctx)
	if err != nil {
		return err
	}
	r.log.Info("mysqld runs on the copied data", "executed", holds.String())
	if err := r.record().change(func(v *volumeRecord) {
		v.Restored = &core.Restore{Source: r.name, Stage: core.RestoreDone,
			Files: core.Amount{Done: r.bytes, Of: r.bytes}}
	}); err != nil {
		return err
	}
	lacking, err := archive.LackingOf(ctx, r.root().DB())
	if err != nil {
		return err
	}
	return r.tellLacking(lacking)
}
