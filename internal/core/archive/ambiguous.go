package archive

import (
	"time"

	"cnmsql.co/internal/gtid"
)

// overtaken refuses a time by which, by its own clock, a later primary had committed what the replay lacks
// since it ends before that, at what an earlier primary committed later; nil if there is none. The former
// one may commit late what others had from it, and archive that before it learns that it was replaced; or
// the clocks of the two differ. Within an epoch the order of the log is that of the replay, whatever the
// clock said.
func (s *selector) overtaken() *Refusal {
	if !s.ends || s.target.Kind != ToTime || s.unread != nil || s.expand != nil {
		return nil
	}
	r := &Refusal{Reason: TargetAmbiguous, Parts: []Key{{Epoch: s.at}}}
	for _, p := range s.line.parts {
		if p.Epoch <= s.at || p.First.After(s.target.Time) {
			continue
		}
		first := s.firstIn(p)
		if s.unread != nil || s.expand != nil {
			return nil
		}
		if first.IsZero() || first.After(s.target.Time) {
			continue
		}
		if before := first.Add(-time.Microsecond); r.Nearest.IsZero() || before.Before(r.Nearest) {
			r.Nearest = before
		}
		r.Parts = append(r.Parts[:1:1], Key{Epoch: p.Epoch})
	}
	if len(r.Parts) == 1 {
		return nil
	}
	if later := s.lastBefore(r.Parts[1].Epoch); later.After(s.target.Time) {
		r.Later = later
	}
	return r
}

// firstIn is the earliest commit of what the replay lacks of a part; zero if it lacks nothing. A part of
// which that has to be known first is asked for.
func (s *selector) firstIn(p Part) (first time.Time) {
	take := s.wanted(p).Subtract(s.plan.Set)
	all, known := s.read[p.Key()]
	switch {
	case take.IsEmpty():
		return first
	case take.Equal(p.GTIDs):
		return p.First
	case p.IsRun():
		s.expand = &p
		return first
	case !known:
		pieces, _ := s.line.pieces(p)
		s.unread, s.aside = &Step{pieces, take}, true
		return first
	}
	return earliest(all, take)
}

func earliest(all []Transaction, of gtid.Set) (first time.Time) {
	for _, t := range all {
		if of.Contains(t.ID) && (first.IsZero() || t.Committed.Before(first)) {
			first = t.Committed
		}
	}
	return first
}

// lastBefore is when the last of what the replay lacks of the epochs before one was committed, or somewhat
// later: a replay until then does not end in them.
func (s *selector) lastBefore(epoch int64) (last time.Time) {
	for _, p := range s.line.parts {
		if p.Epoch < epoch && p.Last.After(last) && !s.wanted(p).Subtract(s.plan.Set).IsEmpty() {
			last = p.Last
		}
	}
	return last
}

// proveTimes leaves the times in a refusal that can be restored to, as is tried, and takes others for those
// of which two primaries do not agree. asks is what has to be known first.
func (r *Refusal) proveTimes(try func(time.Time) Selection) (asks *Selection) {
	nearest, later := r.Nearest, r.Later
	r.Nearest, r.Later = time.Time{}, time.Time{} // until they are proven
	if nearest, asks = proven(nearest, try, func(r *Refusal) time.Time { return r.Nearest }); asks != nil {
		return asks
	}
	r.Nearest = nearest
	if later, asks = proven(later, try, func(r *Refusal) time.Time { return r.Later }); asks == nil {
		r.Later = later
	}
	return asks
}

// proven is the first time from one on that can be restored to; zero if there is none. Each of those that
// next gives is further away.
func proven(at time.Time, try func(time.Time) Selection,
	next func(*Refusal) time.Time) (_ time.Time, asks *Selection) {
	for !at.IsZero() {
		got := try(at)
		switch {
		case got.Read != nil || got.Expand != nil:
			return at, &got
		case got.Refusal == nil:
			return at, nil
		case got.Refusal.Reason != TargetAmbiguous:
			return time.Time{}, nil
		}
		at = next(got.Refusal)
	}
	return at, nil
}
