package judge

import (
	"cmp"
	"slices"
	"time"

	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// untilTime is what a restore to a time holds, when the last of it was committed, and the epoch in which
// something that was committed later ends it, 0 if nothing does. What came belated counts until the first
// of it that was committed later, and from then on as the next primary archived it.
func (c *check) untilTime(at time.Time) (set gtid.Set, reached time.Time, ends int64) {
	if set = c.base.End; !c.base.Time.After(at) { // otherwise the log alone tells when that was
		reached = c.base.Time
	}
	is := c.survived()
	left := int64(0)
	for _, w := range c.of[0].stored() {
		isBelated := c.of[0].isBelated(w)
		switch {
		case !is(w) || set.Contains(w.ID) || isBelated && left == w.epoch:
		case !w.Committed.After(at):
			set = set.Union(w.ID)
			if w.Committed.After(reached) {
				reached = w.Committed
			}
		case isBelated:
			left = w.epoch
		default:
			return set, reached, w.epoch
		}
	}
	return set, reached, 0
}

// isOvertaken reports whether a restore to a time that holds a set, and ends in an epoch, lacks what a later
// primary had committed by then.
func (c *check) isOvertaken(set gtid.Set, ends int64, at time.Time) bool {
	is := c.survived()
	return slices.ContainsFunc(c.of[0].stored(), func(w Written) bool {
		return w.epoch > ends && is(w) && !set.Contains(w.ID) && !w.Committed.After(at)
	})
}

// survived returns what reports whether a transaction is one of those that are replayed to the latest, or
// the same as another primary stored it; and no recovery was noted since that tells of it as lost.
func (c *check) survived() func(Written) bool {
	what := map[string]int{} // of a number that was given twice, which of the two
	for _, w := range c.all {
		what[w.ID.String()] = w.What
	}
	return func(w Written) bool {
		is, survives := what[w.ID.String()]
		return survives && is == w.What && !c.of[0].isGivenUp(w)
	}
}

// isGivenUp reports whether a group was told, since a transaction was stored, to go on without it. That may not
// have come about, and nobody can tell: the next primary archives what it holds of that, by its own clock.
func (s *Store) isGivenUp(w Written) bool {
	told := w.epoch
	for next := s.next(told); next != nil; next = s.next(told) {
		if archive.Same(w.ID, told, next.Recoveries).IsEmpty() {
			return true
		}
		told = next.Epoch
	}
	return false
}

// HoldsLater reports whether a backup holds what was committed after a moment, by the clock of a primary that
// stored it. What came belated does not count: the next primary committed it, too, and archives it by its own
// clock.
func (s *Store) HoldsLater(base archive.Base, at time.Time) bool {
	return slices.ContainsFunc(s.stored(), func(w Written) bool {
		return base.End.Contains(w.ID) && w.Committed.After(at) && !s.isBelated(w)
	})
}

// stored is all that is archived, by epoch and sequence.
func (s *Store) stored() (all []Written) {
	for _, p := range s.ordered() {
		for _, w := range s.Content(p.Key()) {
			w.epoch = p.Epoch
			all = append(all, w)
		}
	}
	return all
}

// isBelated reports whether the next primary did not find a transaction in the archive when it began its
// branch: it archives that itself, by its own clock.
func (s *Store) isBelated(w Written) bool {
	next := s.next(w.epoch)
	return next != nil && !next.Held.Contains(w.ID)
}

// next is the branch that goes on after an epoch, of those that lead to the newest; nil if there is none.
func (s *Store) next(epoch int64) (next *archive.Branch) {
	all := slices.SortedFunc(slices.Values(s.Branches), func(a, b archive.Branch) int {
		return cmp.Compare(b.Epoch, a.Epoch)
	})
	for i := range all {
		isBeside := next != nil && next.After > 0 && all[i].Epoch > next.After
		switch {
		case all[i].Epoch <= epoch:
			return next
		case !isBeside:
			next = &all[i]
		}
	}
	return next
}
