package restore

import (
	"errors"
	"maps"
	"slices"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	facts "cnmsql.co/internal/core/archive"
)

// Suspects are what was damaged, or not there, when earlier attempts to restore read it. Reading all of a backup
// beforehand would take as long as restoring it; these few are read before the next attempt writes anything.
type Suspects struct {
	// Backups are the names of parts, by the ids of their backups.
	Backups map[string][]string `json:"backups,omitempty"`
	// Parts are of the archive.
	Parts []facts.Key `json:"parts,omitempty"`
}

// ofBackup are the names of parts of a backup.
func (s *Suspects) ofBackup(id string) []string {
	if s == nil {
		return nil
	}
	return s.Backups[id]
}

// archived are those of the archive.
func (s *Suspects) archived() []facts.Key {
	if s == nil {
		return nil
	}
	return s.Parts
}

// With are these and what an attempt failed with; the same where that is of no part. nil are none.
func (s *Suspects) With(err error) *Suspects {
	base, ofBase := errors.AsType[*backup.PartError](err)
	logs, ofLogs := errors.AsType[*archive.PartError](err)
	if !ofBase && !ofLogs {
		return s
	}
	out := &Suspects{Backups: map[string][]string{}, Parts: slices.Clone(s.archived())}
	if s != nil {
		maps.Copy(out.Backups, s.Backups)
	}
	if ofBase && !slices.Contains(s.ofBackup(base.Backup), base.Part) {
		out.Backups[base.Backup] = append(slices.Clone(s.ofBackup(base.Backup)), base.Part)
	}
	if ofLogs {
		for _, key := range logs.Keys {
			if !slices.Contains(out.Parts, key) {
				out.Parts = append(out.Parts, key)
			}
		}
	}
	return out
}
