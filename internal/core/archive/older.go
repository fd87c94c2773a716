package archive

import "time"

// isOlder reports whether a backup is of before the target, which is a time, though its own time says
// otherwise: that is by the clock of its Job, which may be ahead. The first part that the primary of its epoch
// wrote behind all that is in it shows that, if that begins with what was committed by then; before is a moment
// before that. The primary's clock is believed, as for every target that is a time: one that was set back
// within the epoch may date what the backup holds behind what came after it. A later primary shows nothing:
// its clock is another one than that by which what the backup holds is dated. What has to be known first is
// asked for; what nobody can read shows nothing.
func (s *selector) isOlder(base Base) (before time.Time, is bool) {
	for _, p := range s.line.parts {
		holds := p.Before.Contains(base.End)
		switch {
		case p.Epoch != base.Epoch || p.GTIDs.IsEmpty():
			continue
		case !holds && p.IsRun() && !base.End.Contains(p.GTIDs) && p.Before.Union(p.GTIDs).Contains(base.End):
			if !p.First.After(s.target.Time) {
				s.expand = &p // its parts tell which of them is the first
			}
			return before, false
		case !holds:
			continue
		}
		first := s.begins(p)
		return first.Add(-time.Microsecond), !first.IsZero() && !first.After(s.target.Time)
	}
	return before, false
}

// begins is when the first of a part was committed, as far as that may be before the target; zero if it is not
// known.
func (s *selector) begins(p Part) time.Time {
	if p.First.After(s.target.Time) || !p.Last.After(s.target.Time) || p.Transactions == 1 {
		return p.First
	}
	if p.IsRun() {
		s.expand = &p
		return time.Time{}
	}
	all, known := s.read[p.Key()]
	if pieces, missing := s.line.pieces(p); !known && len(missing) == 0 {
		s.unread, s.aside = &Step{pieces, p.GTIDs}, true
	}
	if len(all) == 0 {
		return time.Time{}
	}
	return all[0].Committed
}
