package backupjob

import (
	"context"
	"errors"
	"log/slog"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/retention"
	"cnmsql.co/internal/store"
)

// Remove removes the backup that the Task in a directory names from the store that its other
// files tell of. No other backup has its ID, whoever the archive belongs to by now. What is
// gone already is no error.
func Remove(ctx context.Context, dir string, log *slog.Logger) error {
	t, s, err := removal(dir)
	if err != nil {
		return err
	}
	if err := backup.Remove(ctx, s, t.Cluster, t.ID); err != nil {
		return err
	}
	log.Info("the backup is removed from the store", "cluster", t.Cluster, "id", t.ID)
	return nil
}

// RemoveArchive removes all that the Cluster of the Task in a directory has in the store that
// its other files tell of. Nobody writes there any more: the operator has seen to that.
func RemoveArchive(ctx context.Context, dir string, log *slog.Logger) error {
	t, s, err := removal(dir)
	if err != nil {
		return err
	}
	if t.ClusterUID == "" {
		return errors.New("the task does not say of which Cluster the archive is: nothing is removed")
	}
	r, err := retention.RemoveArchive(ctx, s, t.Cluster, t.ClusterUID)
	if err != nil {
		return err
	}
	log.Info("the archive is removed from the store", "cluster", t.Cluster, "uid", t.ClusterUID,
		"backups", r.Backups, "objects", r.Objects, "unknown", r.Unknown, "names", r.UnknownNames)
	return nil
}

// removal is what a directory tells to remove, and from where.
func removal(dir string) (Task, store.Store, error) {
	t, err := readTask(dir)
	if err != nil {
		return t, nil, err
	}
	s, err := store.Open(dir)
	return t, s, err
}
