package backupjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

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
	log.Info("the Job removed the backup from the store", "cluster", t.Cluster, "id", t.ID)
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
	log.Info("the Job removed the archive from the store", "cluster", t.Cluster, "uid", t.ClusterUID,
		"backups", r.Backups, "objects", r.Objects, "unknown", r.Unknown, "names", r.UnknownNames)
	return nil
}

// archiveMergeLimit bounds a MergeArchive: what it has done is told before its Pod has to end.
const archiveMergeLimit = 50 * time.Minute

// MergeArchive merges small parts of the archive of the Cluster that the Task in a directory names. What
// keeps it from all that could be merged is an error; what was merged before that stays.
func MergeArchive(ctx context.Context, dir string, log *slog.Logger) error {
	t, s, err := removal(dir)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, archiveMergeLimit,
		fmt.Errorf("it was given up after %s; the next Job goes on", archiveMergeLimit))
	defer cancel()
	m := retention.Merge(limited, s, retention.Policy{Cluster: t.Cluster, UID: t.ClusterUID, Now: time.Now()})
	log.Info("the Job merged small parts of the archive",
		"parts", m.Parts, "bundles", m.Bundles, "summaries", m.Summaries,
		"removed", m.Removed, "held", m.Held, "message", m.Message)
	if m.Held == "" {
		return nil
	}
	return fmt.Errorf("%s: %d parts were merged into %d bundles, and less than could be: %s", m.Held, m.Parts,
		m.Bundles, m.Message)
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
