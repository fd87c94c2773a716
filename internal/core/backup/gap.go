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
	pause, last := gapPause, time.Time{}
	for _, b := range all {
		goesOn, later := b.Ended.IsZero(), b.Started.IsZero() || !b.Started.Before(gap.Since)
		switch {
		case b.Closes(gap) || goesOn && later:
			return false, 0
		case !goesOn && !b.Created.Before(gap.Since):
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
