package backupjob

import (
	"context"
	"log/slog"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/store"
)

// Remove removes the backup that the Task in a directory names from the store that its other
// files tell of. No other backup has its ID, whoever the archive belongs to by now. What is
// gone already is no error.
func Remove(ctx context.Context, dir string, log *slog.Logger) error {
	t, err := readTask(dir)
	if err != nil {
		return err
	}
	s, err := store.Open(dir)
	if err != nil {
		return err
	}
	if err := backup.Remove(ctx, s, t.Cluster, t.ID); err != nil {
		return err
	}
	log.Info("the backup is removed from the store", "cluster", t.Cluster, "id", t.ID)
	return nil
}
