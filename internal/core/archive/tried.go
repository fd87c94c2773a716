package archive

import "cnmsql.co/internal/gtid"

// MayAnother reports whether another backup may lead to the target: the refusal is of the backup, or
// of what lies between it and the target.
func (r *Refusal) MayAnother() bool {
	switch r.Reason {
	case TargetNotArchived, TargetLost:
		return false
	}
	return true
}

// MayOlder reports whether an older backup may lead to the target: the refusal is of the backup.
func (r *Refusal) MayOlder() bool {
	return r.Reason == TargetBeforeBackup || r.Reason == BackupNotOnBranch
}

// Tried is what backups have refused to lead to a target. A restore tries that which ended last
// first, by the clocks of their Jobs, which may be wrong: behind a gap in the archive there may be one
// that looks older.
type Tried struct {
	refused bool
	short   gtid.Set // from where the way to the target fails
}

// GoesOn notes that a backup that has to be replayed from a set on is refused, and reports whether any other
// may do. A backup that took long has to be replayed from what it held when it began.
func (t *Tried) GoesOn(r *Refusal, from gtid.Set) bool {
	if r.MayAnother() && !r.MayOlder() {
		t.refused, t.short = true, t.short.Union(from)
	}
	return r.MayAnother()
}

// Skips reports whether a backup that holds end leads no further than those that were refused.
func (t *Tried) Skips(end gtid.Set) bool { return t.refused && t.short.Contains(end) }

// HoldsMore reports whether a backup that looks older by the clock of its Job surely holds more than what a restore
// of another one, of the epoch chosen, comes to: begin is what is in it in any case. One of an earlier epoch does
// not: what it has beyond the later one was lost.
func HoldsMore(begin gtid.Set, epoch int64, comesTo gtid.Set, chosen int64) bool {
	return epoch >= chosen && begin.Contains(comesTo) && !comesTo.Contains(begin)
}
