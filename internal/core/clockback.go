package core

import "time"

// NoneAfter takes what the status dates later than now for happening now. A wall clock was set back
// since, or another operator's is ahead: what is counted from such a time would not end before
// the clock is there again.
func (s *Status) NoneAfter(now time.Time) {
	for _, at := range []*time.Time{&s.FailingSince, &s.LastFailover, &s.CurrentPrimaryAt, &s.TargetPrimaryAt} {
		notAfter(at, now)
	}
	if s.Promotion != nil {
		notAfter(&s.Promotion.WritableSince, now)
	}
	if s.Return != nil {
		back := *s.Return
		notAfter(&back.At, now)
		s.Return = &back
	}
	if op := s.Operation; op != nil {
		if ahead := op.StartedAt.Sub(now); ahead > 0 && !op.Deadline.IsZero() {
			op.Deadline = op.Deadline.Add(-ahead)
		}
		notAfter(&op.StartedAt, now)
		notAfter(&op.PausedAt, now)
	}
}

func notAfter(at *time.Time, now time.Time) {
	if at.After(now) {
		*at = now
	}
}
