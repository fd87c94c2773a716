package archive

import "time"

// Summarizing decides of which bundles of an epoch a summary is written: so many together, one behind
// the other, of which each has its final place. Those are settled, nothing lies beside them, and they
// have no part in common with another one. It is told of the bundles in order, some at a time. Now is by
// the store's clock, and not later than by the clock here.
type Summarizing struct {
	Now time.Time
	// Size is how many bundles a summary tells of.
	Size int
	// waiting are those that no summary tells of yet.
	waiting []Bundle
}

// Add tells of bundles behind all others, and of which of them a summary tells, or an object lies
// beside. It gives those of which one is to be written now.
func (s *Summarizing) Add(bundles []Bundle, isTold, hasBeside func(Bundle) bool) (out [][]Bundle) {
	overlaps := Overlapping(bundles)
	for _, b := range bundles {
		if !isSettled(b.Written, s.Now) || overlaps[b] || isTold(b) || hasBeside(b) {
			continue
		}
		if s.waiting = append(s.waiting, b); len(s.waiting) >= s.Size {
			out, s.waiting = append(out, s.waiting), nil
		}
	}
	return out
}

// End gives what is left when all bundles are told. While the epoch goes on, that waits for more.
func (s *Summarizing) End(isOver bool) [][]Bundle {
	rest := s.waiting
	s.waiting = nil
	if !isOver || len(rest) == 0 {
		return nil
	}
	return [][]Bundle{rest}
}
