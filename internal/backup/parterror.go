package backup

import (
	"context"
	"errors"
	"slices"

	"cnmsql.co/internal/store"
)

// PartError is a part that was damaged, or not there, when it was read.
type PartError struct {
	// Backup is the id of the backup, Part the name of the part within it.
	Backup, Part string
	err          error
}

func (e *PartError) Error() string { return e.err.Error() }

// Unwrap is PartDamaged or PartMissing, with what was found.
func (e *PartError) Unwrap() error { return e.err }

// ofPart names the part that an error is of, if it is one of the part and not of the store.
func (m *Manifest) ofPart(name string, err error) error {
	if !errors.Is(err, PartDamaged) && !errors.Is(err, PartMissing) {
		return err
	}
	return &PartError{m.ID, name, err}
}

// CheckParts reads parts whole, by their names, and holds them against their hashes: PartMissing or PartDamaged.
// Check, which reads nothing, finds what has another size only.
func CheckParts(ctx context.Context, s store.Store, m *Manifest, names []string) error {
	f := &fetcher{s: s, m: m, prefix: prefix(m.Cluster.Cluster, m.ID)}
	for _, p := range m.Parts {
		if !slices.Contains(names, p.Name) {
			continue
		}
		if err := f.fetch(ctx, p, make([]byte, p.Stored+1)); err != nil {
			return m.ofPart(p.Name, err)
		}
	}
	return nil
}
