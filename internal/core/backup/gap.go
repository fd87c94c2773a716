package backup

import (
	"slices"
	"time"
)

const (
	// gapPause is until another Backup is made after the first that failed; it doubles with
	// each, up to maxGapPause.
	gapPause    = 10 * time.Minute
	maxGapPause = 6 * time.Hour
)

// Taken is what is known of a Backup of the Cluster.
type Taken struct {
	Created time.Time
	// Started is when the donor was asked; zero before that.
	Started time.Time
	// Ended is zero while it goes on; Completed only if the backup is in the store.
	Ended     time.Time
	Completed bool
}

// Closes tells whether the backup holds what an archive lacks since a moment: it was begun
// later, and holds all that the primary had executed then.
func (b Taken) Closes(since time.Time) bool { return b.Completed && !b.Started.Before(since) }

// GapClosed tells whether one can be restored to what was written after a gap in the
// archive that was found at that moment.
func GapClosed(since time.Time, all []Taken) bool {
	return slices.ContainsFunc(all, func(b Taken) bool { return b.Closes(since) })
}

// AfterGap tells whether a Backup is to be made, because the archive has a gap that was
// found at that moment; or when to look again, 0 if something else will tell.
func AfterGap(since, now time.Time, all []Taken) (create bool, wake time.Duration) {
	pause, last := gapPause, time.Time{}
	for _, b := range all {
		goesOn, later := b.Ended.IsZero(), b.Started.IsZero() || !b.Started.Before(since)
		switch {
		case b.Closes(since) || goesOn && later:
			return false, 0
		case !goesOn && !b.Completed && !b.Created.Before(since): // it failed
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
