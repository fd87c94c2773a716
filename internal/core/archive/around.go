package archive

import (
	"time"

	"cnmsql.co/internal/gtid"
)

// lost refuses transactions that a failover lost, with the times around them that can be restored
// on the base: that of the last commit before them that survived, and of the first one after them.
func (s *selector) lost(ids gtid.Set, base Base) *Refusal {
	for _, p := range s.line.parts {
		if p.IsRun() && !p.GTIDs.Intersect(ids).IsEmpty() { // when they were lost, its parts tell
			s.expand = &p
			return nil
		}
	}
	r := &Refusal{Reason: TargetLost, GTIDs: ids, Nearest: base.Time}
	at := s.firstOf(ids)
	if base.Time.After(at) { // what is before them is for an older base to tell
		r.Nearest, r.Later = time.Time{}, base.Time
		return r
	}
	for _, p := range s.line.parts {
		survives := s.line.surviving(p.Epoch, p.GTIDs)
		isAround := !p.First.After(at) && p.Last.After(at)
		switch {
		case base.End.Contains(survives):
		case p.IsRun() && (isAround || !survives.Equal(p.GTIDs)):
			s.expand = &p
			return nil
		case !survives.Equal(p.GTIDs), isAround: // which commit of it survived is not known
		case p.Last.After(r.Nearest) && !p.Last.After(at):
			r.Nearest = p.Last
		case p.First.After(at) && (r.Later.IsZero() || p.First.Before(r.Later)):
			r.Later = p.First
		}
	}
	return r
}

// firstOf is when the first part that holds one of some transactions begins, of any branch.
func (s *selector) firstOf(ids gtid.Set) (first time.Time) {
	for _, p := range s.line.parts {
		if !p.GTIDs.Intersect(ids).IsEmpty() && (first.IsZero() || p.First.Before(first)) {
			first = p.First
		}
	}
	return first
}
