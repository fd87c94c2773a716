package judge

import (
	"cmp"
	"slices"
	"time"

	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

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

// untilTime is what a restore to a time holds, and whether something that was committed later ends it. What
// came belated counts until the first of it that was committed later, and from then on as the next
// primary archived it.
func (c *check) untilTime(at time.Time) (set gtid.Set, ends bool) {
	s := c.of[0]
	set = c.base.End
	is := map[string]int{} // of a number that was given twice, what was replayed to the latest
	for _, w := range c.all {
		is[w.ID.String()] = w.What
	}
	left := int64(0)
	parts := slices.SortedFunc(slices.Values(s.Parts), func(a, b archive.Part) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Sequence, b.Sequence))
	})
	for _, p := range parts {
		for _, w := range s.Content(p.Key()) {
			w.epoch = p.Epoch
			what, survives := is[w.ID.String()]
			isBelated := s.isBelated(w)
			switch {
			case !survives || what != w.What || set.Contains(w.ID) || isBelated && left == p.Epoch:
			case !w.Committed.After(at):
				set = set.Union(w.ID)
			case isBelated:
				left = p.Epoch
			default:
				return set, true
			}
		}
	}
	return set, false
}
