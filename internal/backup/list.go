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
	// Listed tells that the listing has the manifest, and Written is its last change; zero when
	// the listing does not have it.
	Listed  bool
	Written time.Time
	// Err is why it is no backup: BackupUnfinished, ManifestDamaged, FormatUnknown, or that
	// its manifest could not be read. One that is Listed, and BackupUnfinished all the same, was
	// removed meanwhile.
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
			e.Listed, e.Written = true, o.Modified
		}
	}
	out := make([]Entry, 0, len(all))
	for _, e := range all {
		e.read(ctx, s, cluster)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out = append(out, *e)
	}
	return out, nil
}

// read reads the manifest of what is listed.
func (e *Entry) read(ctx context.Context, s store.Store, cluster string) {
	from := Read
	if e.Listed {
		from = readListed
	}
	m, err := from(ctx, s, cluster, e.ID)
	switch {
	case err == nil:
		e.Summary = m.Summary
	case errors.Is(err, BackupUnknown):
		e.Err = refuse(BackupUnfinished, "backup %s, of %d objects, the last of %s", e.ID, e.Objects,
			e.Modified.Format(time.RFC3339))
	default:
		e.Err = err
	}
}

// ErrManifestAbsent says that the store lists a manifest that it does not find. Nobody can tell
// then whether there is such a backup, and it is not taken for one that has none.
var ErrManifestAbsent = errors.New("the store lists its manifest, and says that it is not there; it is asked again")

// readListed reads a manifest that a listing has. Where it is not found the store is asked again for
// both, a few times: BackupUnknown is one that was removed meanwhile, and ErrManifestAbsent one
// that is listed still.
func readListed(ctx context.Context, s store.Store, cluster, id string) (m *Manifest, err error) {
	err = retry(ctx, 3, func(ctx context.Context) (err error) {
		if m, err = Read(ctx, s, cluster, id); err == nil {
			return nil
		}
		if !errors.Is(err, BackupUnknown) {
			return &finalError{err} // it was asked for some times already
		}
		isListed, listErr := lists(ctx, s, ManifestKey(cluster, id))
		switch {
		case listErr != nil:
			return listErr
		case !isListed:
			return &finalError{err}
		}
		return fmt.Errorf("backup %s of %s: %w", id, cluster, ErrManifestAbsent)
	})
	return m, err
}

// lists reports whether the store lists an object.
func lists(ctx context.Context, s store.Store, key string) (bool, error) {
	for o, err := range s.List(ctx, key) {
		if err != nil {
			return false, fmt.Errorf("looking whether %s is listed: %w", key, err)
		}
		if o.Key == key {
			return true, nil
		}
	}
	return false, nil
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
// removes what is unfinished: the caller wants it gone, whatever it is, and knows that nobody is taking it.
// Nothing else below its prefix is touched, and what is gone already is no error.
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

// RemoveUnfinished removes what was given up and has no manifest. What has one all the same, or is
// listed with one, or of which that cannot be told, is left as it is, and is an error: the caller has it
// from a listing that may have lied, or is old by now.
func RemoveUnfinished(ctx context.Context, s store.Store, cluster, id string) error {
	_, err := Read(ctx, s, cluster, id)
	if err == nil {
		err = errors.New("its manifest is there")
	}
	if !errors.Is(err, BackupUnknown) {
		return stays(cluster, id, err)
	}
	dir, parts := prefix(cluster, id), []string(nil)
	for o, err := range s.List(ctx, dir) {
		if err != nil {
			return fmt.Errorf("listing backup %s of %s: %w", id, cluster, err)
		}
		switch name := strings.TrimPrefix(o.Key, dir); {
		case name == fileManifest:
			return stays(cluster, id, ErrManifestAbsent)
		case partName.MatchString(name):
			parts = append(parts, name)
		}
	}
	_, err = removeAll(ctx, s, dir, slices.Values(parts))
	return err
}

func stays(cluster, id string, why error) error {
	return fmt.Errorf("backup %s of %s was listed without a manifest, and nothing of it is removed: %w", id, cluster,
		why)
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
