package backup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/store"
)

// Entry is what List tells of one backup.
type Entry struct {
	// Summary has nothing but the ID if Err is not nil.
	Summary
	// Objects and Size are those that the listing tells, in bytes; Modified is the last
	// change of any.
	Objects  int
	Size     int64
	Modified time.Time
	// Written is the last change of the manifest; zero when the listing does not have it.
	Written time.Time
	// Err is why it is no backup: BackupUnfinished, ManifestDamaged, FormatUnknown, or that
	// its manifest could not be read.
	Err error
}

// List tells of all that lies where the backups of a cluster do, in the order of their IDs.
// A store's listing may not have yet what was written a moment ago.
func List(ctx context.Context, s store.Store, cluster string) ([]Entry, error) {
	var all []*Entry
	for o, err := range s.List(ctx, basePrefix(cluster)) {
		if err != nil {
			return nil, fmt.Errorf("listing the backups of %s: %w", cluster, err)
		}
		if !Known(cluster, o.Key) {
			continue // not ours
		}
		id, name, _ := strings.Cut(strings.TrimPrefix(o.Key, basePrefix(cluster)), "/")
		if len(all) == 0 || all[len(all)-1].ID != id {
			all = append(all, &Entry{Summary: Summary{ID: id}})
		}
		e := all[len(all)-1]
		e.Objects++
		e.Size += o.Size
		if o.Modified.After(e.Modified) {
			e.Modified = o.Modified
		}
		if name == fileManifest {
			e.Written = o.Modified
		}
	}
	out := make([]Entry, 0, len(all))
	for _, e := range all {
		m, err := Read(ctx, s, cluster, e.ID)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		switch {
		case err == nil:
			e.Summary = m.Summary
		case errors.Is(err, BackupUnknown):
			e.Err = refuse(BackupUnfinished, "backup %s, of %d objects, the last of %s", e.ID, e.Objects,
				e.Modified.Format(time.RFC3339))
		default:
			e.Err = err
		}
		out = append(out, *e)
	}
	return out, nil
}

// Read reads a backup's manifest; BackupUnknown if there is none. It does not need the
// store's listing.
func Read(ctx context.Context, s store.Store, cluster, id string) (*Manifest, error) {
	if err := checkNames(cluster, id); err != nil {
		return nil, err
	}
	key := ManifestKey(cluster, id)
	data, err := read(ctx, s, key, maxManifest)
	if errors.Is(err, store.NotFound) {
		return nil, refuse(BackupUnknown, "backup %s of %s", id, cluster)
	}
	if err != nil {
		return nil, err
	}
	m, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if m.ID != id || m.Cluster.Cluster != cluster {
		return nil, refuse(ManifestDamaged, "%s is that of backup %s of %s", key, m.ID, m.Cluster.Cluster)
	}
	return m, nil
}

// Check looks whether all parts are in the store, by its listing, and by themselves those
// that the listing does not have: PartMissing, or PartDamaged for another size. It does not
// read what is in them.
func Check(ctx context.Context, s store.Store, m *Manifest) error {
	dir := prefix(m.Cluster.Cluster, m.ID)
	sizes := map[string]int64{}
	for o, err := range s.List(ctx, dir) {
		if err != nil {
			return fmt.Errorf("listing backup %s of %s: %w", m.ID, m.Cluster.Cluster, err)
		}
		sizes[strings.TrimPrefix(o.Key, dir)] = o.Size
	}
	for _, p := range m.Parts {
		size, listed := sizes[p.Name]
		if listed && size != p.Stored {
			return refuse(PartDamaged, "%s has %d bytes, and %d were stored", dir+p.Name, size, p.Stored)
		}
		if !listed {
			if err := probe(ctx, s, dir+p.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// probe looks whether an object is there that the listing does not have.
func probe(ctx context.Context, s store.Store, key string) error {
	err := retry(ctx, 3, func(ctx context.Context) error {
		_, err := get(ctx, s, key, make([]byte, 1))
		return err
	})
	if errors.Is(err, store.NotFound) {
		return refuse(PartMissing, "%s (%v)", key, err)
	}
	return wrap(err, "looking for %s", key)
}

// Remove removes a backup: first its manifest, so that what is half removed is none, and
// then its parts, several at a time: those that the manifest names and those that the listing has. It also
// removes what is unfinished; the caller knows that nobody is taking it. Nothing else below
// its prefix is touched, and what is gone already is no error.
func Remove(ctx context.Context, s store.Store, cluster, id string) error {
	if err := checkNames(cluster, id); err != nil {
		return err
	}
	dir, names := prefix(cluster, id), map[string]bool{}
	if m, err := Read(ctx, s, cluster, id); err == nil {
		for _, p := range m.Parts {
			names[p.Name] = true
		}
	} else if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := remove(ctx, s, dir+fileManifest); err != nil {
		return err
	}
	for o, err := range s.List(ctx, dir) {
		if err != nil {
			return fmt.Errorf("listing backup %s of %s, whose manifest is removed: %w", id, cluster, err)
		}
		if name := strings.TrimPrefix(o.Key, dir); partName.MatchString(name) {
			names[name] = true
		}
	}
	_, err := removeAll(ctx, s, dir, maps.Keys(names))
	return err
}

// removeAll removes the objects of a directory, several at a time.
func removeAll(ctx context.Context, s store.Store, dir string, names iter.Seq[string]) (removed int, err error) {
	keys := func(yield func(string, error) bool) {
		for name := range names {
			if !yield(dir+name, nil) {
				return
			}
		}
	}
	return store.RemoveAll(ctx, keys, func(ctx context.Context, key string) error { return remove(ctx, s, key) })
}

// Sweep removes what attempts that were given up have left of a backup that there is: no
// manifest will ever name it. It returns how many objects these were.
func Sweep(ctx context.Context, s store.Store, m *Manifest) (swept int, err error) {
	dir, named := prefix(m.Cluster.Cluster, m.ID), map[string]bool{}
	for _, p := range m.Parts {
		named[p.Name] = true
	}
	var left []string
	for o, err := range s.List(ctx, dir) {
		if err != nil {
			return 0, fmt.Errorf("listing backup %s of %s: %w", m.ID, m.Cluster.Cluster, err)
		}
		if name := strings.TrimPrefix(o.Key, dir); partName.MatchString(name) && !named[name] {
			left = append(left, name)
		}
	}
	return removeAll(ctx, s, dir, slices.Values(left))
}

func remove(ctx context.Context, s store.Store, key string) error {
	err := retry(ctx, 3, func(ctx context.Context) error { return s.Delete(ctx, key) })
	return wrap(err, "removing %s", key)
}
