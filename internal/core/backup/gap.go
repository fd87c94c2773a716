package backup

import (
	"slices"
	"time"

	"cnmsql.co/internal/gtid"
)

const (
	// gapPause is until another Backup is made after the first that failed; it doubles with
	// each, up to maxGapPause.
	gapPause    = 10 * time.Minute
	maxGapPause = 6 * time.Hour
)

// Gap is what the archive lacks.
type Gap struct {
	// Since is when that was found, or that the archive has moved.
	Since time.Time
	// Missing are the transactions; none where that is not known, as of an archive that has moved.
	Missing gtid.Set
}

// Taken is what is known of a Backup of the Cluster.
type Taken struct {
	Created time.Time
	// Started is when the donor was asked; zero before that.
	Started time.Time
	// Ended is zero while it goes on; Completed only if the backup is in the store.
	Ended     time.Time
	Completed bool
	// Holds is what a completed one surely holds; nil where that is not known, as of a set of very many parts.
	Holds *gtid.Set
	// Version of the server that a completed one is of; "" where that is not known.
	Version string
}

// Goes is where an archive goes, and where it went until now.
type Goes struct {
	// Before and Now are places; "" where none is known.
	Before, Now string
	// Began tells whether anything was archived until now, and FromBeginning whether it was to be archived before
	// the Cluster had data.
	Began, FromBeginning bool
}

// Moves reports whether the archive begins in a place of which no backup of before has what the archive will lack:
// in another one than before, or in its first. It then holds nothing that was written earlier, as if that were a gap;
// that it begins is told once its first branch is written, so that a backup which begins later holds all of it.
//
// Where the Cluster was to be archived from its beginning there is no backup of before that, and one that goes on
// now ends with what is written by now. Only one that is complete already may lack something: then the store or a
// key has kept the archive from beginning for as long as that backup took. all are those in the new place.
func (g Goes) Moves(all []Taken) bool {
	switch {
	case g.Now == "" || g.Now == g.Before:
		return false
	case g.Before != "":
		return true
	case g.Began: // under a release that did not note the place
		return false
	}
	return !g.FromBeginning || slices.ContainsFunc(all, func(b Taken) bool { return b.Completed })
}

// Closes reports whether one can be restored to what was written after a gap, from this backup: it holds what
// the archive lacks. That it began later is not enough, for it may be of a replica that lagged, while the
// primary could not be asked what to wait for; but it is what is known where the archive has moved.
func (b Taken) Closes(gap Gap) bool {
	return b.Completed && !b.Started.Before(gap.Since) && (b.Holds == nil || b.Holds.Contains(gap.Missing))
}

// GapClosed reports whether one can be restored to what was written after a gap.
func GapClosed(gap Gap, all []Taken) bool {
	return slices.ContainsFunc(all, func(b Taken) bool { return b.Closes(gap) })
}

// AfterGap reports whether a Backup is to be made, because the archive has a gap; or when to look again, 0 if
// something else will tell. One that ended and does not close the gap is as one that failed.
func AfterGap(gap Gap, now time.Time, all []Taken) (create bool, wake time.Duration) {
	return due(gap.Since, now, all, func(b Taken) bool { return b.Closes(gap) })
}

// due reports whether a Backup is to be made for what is so since a moment, or when to look again: not
// while one does that helps or may, and after a pause where those that were made since have not helped.
func due(since, now time.Time, all []Taken, helps func(Taken) bool) (create bool, wake time.Duration) {
	pause, last := gapPause, time.Time{}
	for _, b := range all {
		goesOn, later := b.Ended.IsZero(), b.Started.IsZero() || !b.Started.Before(since)
		switch {
		case helps(b) || goesOn && later:
			return false, 0
		case !goesOn && !b.Created.Before(since):
			if !last.IsZero() {
				pause = min(2*pause, maxGapPause)
			}
			last = latest(last, b.Ended)
		}
	}
	if wake = last.Add(pause).Sub(now); !last.IsZero() && wake > 0 {
		return false, wake
	}
	return true, 0
}
