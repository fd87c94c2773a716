package retention

import (
	"context"
	"errors"
	"fmt"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/store"
)

// Removed is what RemoveArchive removed: backups, also those that were given up, and objects of
// the archive of binary logs. Strangers are what lies there still, which nobody knows.
type Removed struct {
	Backups, Objects int
	Strangers
}

// RemoveArchive removes all that a cluster has in a store, when nobody writes there any more:
// the backups, each of which is none before its parts go, the archive of binary logs, and last
// the identity, so that whoever is cut off finds out again whose the rest is. What is another
// cluster's is left as it is: backup.ArchiveTaken. What is gone already is no error.
func RemoveArchive(ctx context.Context, s store.Store, cluster, uid string) (out Removed, err error) {
	r := &run{s: s, p: Policy{Cluster: cluster, UID: uid}, prefix: backup.LogPrefix(cluster)}
	err = r.isOurs(ctx)
	if errors.Is(err, store.NotFound) {
		return out, r.isNobodys(ctx, err)
	}
	if err != nil {
		return out, err
	}
	all, err := r.ourBackups(ctx)
	if err == nil {
		err = r.areOurs(ctx)
	}
	if err != nil {
		return out, err
	}
	for _, id := range all {
		if err := backup.Remove(ctx, s, cluster, id); err != nil {
			return out, err
		}
		out.Backups++
	}
	if out.Objects, err = r.removeLogs(ctx); err != nil {
		return out, err
	}
	if out.Strangers, err = r.strangers(ctx); err != nil {
		return out, err
	}
	return out, backup.Disown(ctx, s, cluster)
}

// isNobodys returns nil when nothing lies in the place of a Cluster whose identity is not there,
// for then there is nothing to remove. When there are objects of a backup or archive, or they
// cannot be listed, it returns an error: nobody knows whose they are. because is why the identity
// could not be read.
func (r *run) isNobodys(ctx context.Context, because error) error {
	for o, err := range r.s.List(ctx, r.p.Cluster+"/") {
		if err != nil {
			return r.notListed(err)
		}
		if r.isKnown(o.Key) {
			return fmt.Errorf("%s lies there, and nobody knows whose it is; nothing is removed: put identity.json "+
				"back, or remove by hand what lies below %s: %w", o.Key, r.p.Cluster, because)
		}
	}
	return nil
}

// ourBackups are the names of all, whole or not, if all of them are this cluster's.
func (r *run) ourBackups(ctx context.Context) (ids []string, err error) {
	all, err := backup.List(ctx, r.s, r.p.Cluster)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		switch {
		case errors.Is(e.Err, backup.BackupUnfinished), errors.Is(e.Err, backup.ManifestDamaged),
			errors.Is(e.Err, backup.FormatUnknown): // below our identity
		case e.Err != nil:
			return nil, e.Err
		case e.Cluster.UID != r.p.UID:
			return nil, foreign("backup "+e.ID, e.Cluster.UID)
		}
		ids = append(ids, e.ID)
	}
	return ids, nil
}

// areOurs looks whether the archive of binary logs is this cluster's.
func (r *run) areOurs(ctx context.Context) error {
	all, err := archive.Branches(ctx, r.s, r.prefix)
	if err != nil {
		return fmt.Errorf("reading what is archived of %s: %w", r.p.Cluster, err)
	}
	return r.foreignBranch(all)
}

// removeLogs removes what is archived of binary logs.
func (r *run) removeLogs(ctx context.Context) (removed int, err error) {
	ours := func(yield func(string, error) bool) {
		for o, err := range r.s.List(ctx, r.prefix) {
			if err != nil {
				yield("", r.notListed(err))
				return
			}
			if archive.Known(r.prefix, o.Key) && !yield(o.Key, nil) {
				return
			}
		}
	}
	return store.RemoveAll(ctx, ours, func(ctx context.Context, key string) error {
		if err := r.s.Delete(ctx, key); err != nil {
			return fmt.Errorf("removing %s: %w", key, err)
		}
		return nil
	})
}
