package archive

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Plan is what to replay on a base backup, in this order.
type Plan struct {
	Steps []Step
	// Set is what a server has executed that has replayed all of it.
	Set gtid.Set
	// Reached is the latest commit that is replayed, or that of the backup.
	Reached time.Time
}

// Parts is how many parts hold what is replayed.
func (p Plan) Parts() (n int64) {
	for _, s := range p.Steps {
		n += s.Pieces[len(s.Pieces)-1].Span().Count()
	}
	return n
}

// Holds tells whether a server that has replayed it holds a set.
func (p Plan) Holds(set gtid.Set) bool { return p.Set.Contains(set) }

// Step is what to replay of a part, or of a run: the transactions in Take and no other.
type Step struct {
	// Pieces are the objects that make up the part, in order; mostly one. A run is alone.
	Pieces []Part
	Take   gtid.Set
}

// Selection is a plan, or why there is none, or the part of which has to be known what
// transactions are in it, in order, before it can be told, or the run of which the parts have to be.
type Selection struct {
	Plan    Plan
	Refusal *Refusal
	Read    *Step
	Expand  *Part
	// Aside: what is to be read stands behind the end of the replay, or only proves that a backup is of before
	// that. Where it cannot be read, it counts as read without a transaction.
	Aside bool
	// Otherwise is what is refused where what is to be known cannot be read: that only proves the times
	// that a refusal names, and it names none that is not proven. nil where it is needed.
	Otherwise *Refusal
}

// Select finds what to replay on base to come to target. The facts of parts do not tell the
// order of the transactions in them: of a part in which the replay may end that has to be
// read. Selection names such a part, and Select is called again with what was in it; or such a
// run, and Select is called again once the archive has its parts. The plan is the one that the
// parts of all runs give. The times that a refusal names can be restored to.
func Select(a Archive, base Base, target Target, read map[Key][]Transaction) Selection {
	got := selectOnly(a, base, target, read)
	if got.Refusal == nil {
		return got
	}
	asks := got.Refusal.proveTimes(func(at time.Time) Selection {
		return selectOnly(a, base, Target{Kind: ToTime, Time: at}, read)
	})
	if asks != nil {
		asks.Otherwise = got.Refusal
		return *asks
	}
	return got
}

// selectOnly is Select but for the times that a refusal names, of which it is not known whether they work.
func selectOnly(a Archive, base Base, target Target, read map[Key][]Transaction) Selection {
	s := &selector{branches: a.Branches, line: lineOf(a), mark: a.Mark, target: target, read: read}
	s.plan, s.expand = Plan{Set: base.End, Reached: base.Time}, s.line.overlap
	if s.expand != nil {
		return Selection{Expand: s.expand}
	}
	refusal := s.check(base)
	switch {
	case s.expand != nil:
		return Selection{Expand: s.expand}
	case refusal != nil:
		return Selection{Refusal: refusal}
	}
	if s.unread != nil {
		return Selection{Read: s.unread, Aside: s.aside}
	}
	if target.Kind == Immediate || target.Kind == ToGTIDs && target.GTIDs.Equal(base.End) {
		return Selection{Plan: s.plan}
	}
	return s.walk()
}

type selector struct {
	branches []Branch // all that there are, on the line or not
	line     line
	mark     *Mark
	target   Target
	read     map[Key][]Transaction
	plan     Plan
	// ends is set when the target is reached, and at is the epoch that was come to last.
	ends bool
	at   int64
	// left is the epoch of which the rest is left to the next primary's log, see leave; 0 is none.
	left int64
	// unread is a part that has to be read first, and expand a run of which the parts have to be
	// known.
	unread *Step
	expand *Part
	// aside is set when unread stands behind the end, or only proves that a backup is of before that.
	aside bool
}

// check refuses what can be told without the order of the transactions.
func (s *selector) check(base Base) *Refusal {
	if s.target.Kind == Immediate {
		return nil // whatever became of it afterwards
	}
	wanted := s.target.GTIDs
	isAtEnd := s.target.Kind == ToGTIDs && wanted.Equal(base.End)
	if u := s.line.unknownBranch(base.Epoch); u != nil && !isAtEnd {
		return &Refusal{Reason: u.Reason, Parts: []Key{u.Key}}
	}
	if epoch, is := s.line.branchless(s.branches, base.Epoch); is && !isAtEnd {
		return &Refusal{Reason: BranchMissing, Parts: []Key{{Epoch: epoch}}}
	}
	if lost := s.line.offLine(base); !lost.IsEmpty() {
		return &Refusal{Reason: BackupNotOnBranch, GTIDs: lost}
	}
	early := &Refusal{Reason: TargetBeforeBackup, Nearest: base.Time}
	switch {
	case isAtEnd:
		return nil
	case s.target.Kind == ToTime:
		if s.target.Time.Before(base.Time) {
			before, is := s.isOlder(base)
			if s.expand != nil || s.unread != nil {
				return nil
			}
			if !is {
				return early
			}
			s.plan.Reached = before
		}
		return s.holdsLater(base)
	case s.target.Kind == ToGTIDs:
		if base.End.Contains(wanted) {
			return early
		}
		return s.unknown(wanted.Subtract(base.End), base)
	case s.target.Kind == BeforeGTIDs:
		if wanted.IsEmpty() || !wanted.Intersect(base.End).IsEmpty() {
			return early
		}
		return s.unknown(wanted, base)
	}
	return nil
}

// holdsLater refuses a backup that holds what was committed after the target by the clock of the
// primary, which the backup's own time does not tell: that is by the clock of the Job. A part
// of which it has to be known what the backup holds is to be read first.
func (s *selector) holdsLater(base Base) *Refusal {
	for _, p := range s.line.parts {
		if !p.Last.After(s.target.Time) {
			continue
		}
		held := s.found(p).Intersect(base.End)
		if held.IsEmpty() {
			continue
		}
		if p.IsRun() {
			s.expand = &p
			return nil
		}
		all, known := s.read[p.Key()]
		switch pieces, missing := s.line.pieces(p); {
		case p.First.After(s.target.Time), p.Transactions == 1, !known && len(missing) > 0:
			all = []Transaction{{held, p.Last}} // what nobody can read is taken for later
		case !known:
			s.unread = &Step{pieces, held}
			return nil
		}
		for _, t := range all {
			if held.Contains(t.ID) && t.Committed.After(s.target.Time) {
				return &Refusal{Reason: TargetBeforeBackup, Nearest: s.latestIn(base)}
			}
		}
	}
	return nil
}

// latestIn is when the last of what a backup holds was committed, or somewhat later.
func (s *selector) latestIn(base Base) time.Time {
	last := base.Time
	for _, p := range s.line.parts {
		if !p.Last.After(last) || p.GTIDs.Intersect(base.End).IsEmpty() {
			continue
		}
		if p.IsRun() && !base.End.Contains(p.GTIDs) {
			s.expand = &p
		}
		last = p.Last
	}
	return last
}

// unknown refuses transactions that no replay can come by.
func (s *selector) unknown(wanted gtid.Set, base Base) *Refusal {
	absent := wanted.Subtract(s.line.known())
	if absent.IsEmpty() {
		return nil
	}
	var all gtid.Set
	for _, p := range s.line.parts {
		all = all.Union(p.GTIDs)
	}
	if lost := absent.Intersect(all); !lost.IsEmpty() {
		return s.lost(lost, base)
	}
	parts := s.line.unknownParts(func(int64) bool { return true })
	if why, found := s.line.whyUnreadable(parts); found {
		return &Refusal{Reason: why, GTIDs: absent, Parts: parts}
	}
	return &Refusal{Reason: TargetNotArchived, GTIDs: absent}
}

// walk goes along the branches until the target is reached or the archive ends.
func (s *selector) walk() Selection {
	parts := s.line.parts
	for i := 0; i <= len(s.line.branches) && !s.ends; i++ {
		var refusal *Refusal
		if i < len(s.line.branches) {
			refusal = s.before(s.line.branches[i], &parts)
		} else {
			refusal = s.take(&parts, func(Part) bool { return true })
		}
		if refusal != nil {
			return Selection{Refusal: refusal}
		}
	}
	overtaken := s.overtaken()
	isReached := s.ends || s.target.Kind == ToTime && !s.target.Time.After(s.complete())
	end := s.line.unknownEnd()
	switch {
	case s.expand != nil:
		return Selection{Expand: s.expand}
	case s.unread != nil:
		return Selection{Read: s.unread, Aside: s.aside}
	case overtaken != nil:
		return Selection{Refusal: overtaken}
	case !isReached && len(end) > 0:
		return Selection{Refusal: s.lack(gtid.Set{}, end, PartMissing)}
	case !isReached && s.target.Kind == ToTime:
		return Selection{Refusal: &Refusal{Reason: TargetAfterArchive, Nearest: s.complete()}}
	}
	return Selection{Plan: s.plan}
}

// complete is until when all that was committed is replayed, as far as that is known: until
// the last commit, or for as long as nothing more was.
func (s *selector) complete() time.Time {
	if s.mark.vouches(s.line, s.plan.Set) && s.mark.Until.After(s.plan.Reached) {
		return s.mark.Until
	}
	return s.plan.Reached
}

// before takes the parts of earlier epochs, and looks whether that is all that the branch
// found in the archive when it began.
func (s *selector) before(b Branch, parts *[]Part) *Refusal {
	if refusal := s.take(parts, func(p Part) bool { return p.Epoch < b.Epoch }); refusal != nil || s.ends {
		return refusal
	}
	missing := s.line.surviving(b.Epoch, b.Held).Subtract(s.plan.Set)
	if missing.IsEmpty() {
		return nil
	}
	return s.lack(missing, s.line.unknownParts(func(epoch int64) bool { return epoch < b.Epoch }), PartMissing)
}

// take goes through parts while they are wanted.
func (s *selector) take(parts *[]Part, wanted func(Part) bool) *Refusal {
	for len(*parts) > 0 && wanted((*parts)[0]) && !s.ends {
		part := (*parts)[0]
		*parts, s.at = (*parts)[1:], part.Epoch
		take := s.wanted(part).Subtract(s.plan.Set)
		switch {
		case take.IsEmpty():
			continue
		case part.IsRun() && !s.isWhole(part, take):
			s.expand, s.ends = &part, true
			return nil
		}
		if refusal := s.part(part, take); refusal != nil {
			return refusal
		}
	}
	return nil
}

// wanted is what of a part survived, but for what is left to the next primary's log.
func (s *selector) wanted(part Part) gtid.Set {
	if s.left == part.Epoch {
		return s.found(part)
	}
	return s.line.surviving(part.Epoch, part.GTIDs)
}

// found is what of a part survived and the next promotion found in the archive.
func (s *selector) found(part Part) gtid.Set {
	set := part.GTIDs
	if next := s.line.next(part.Epoch); next != nil {
		set = set.Intersect(next.Held)
	}
	return s.line.surviving(part.Epoch, set)
}

// leave a transaction to the next primary's log, and all behind it in this epoch, if it is beyond a target
// that is a time and the former primary stored it after the next one had begun its branch: both have
// committed it, and the next one may have done so before the target, and have written more until then. What
// the former one committed before the target counts, whoever was first. It reports whether it is left.
func (s *selector) leave(epoch int64, t Transaction) bool {
	next := s.line.next(epoch)
	if s.target.Kind != ToTime || next == nil || next.Held.Contains(t.ID) {
		return false
	}
	if s.isBeyond(t) {
		s.left = epoch
	}
	return s.left == epoch
}

// isWhole reports whether all parts of a run are taken, and the replay cannot end in them. What
// lacks before any of them lacks before the first, of which that is asked.
func (s *selector) isWhole(run Part, take gtid.Set) bool {
	return take.Equal(run.GTIDs) && !s.mayEnd(run, take)
}

func (s *selector) part(part Part, take gtid.Set) *Refusal {
	missing := s.line.surviving(part.Epoch, part.Before).Subtract(s.plan.Set)
	if !missing.IsEmpty() {
		return s.lack(missing, s.line.hole(part.Key(), missing), ArchiveGap)
	}
	pieces, absent := s.line.pieces(part)
	if len(absent) > 0 {
		return s.lack(take, absent, PartMissing)
	}
	step := Step{pieces, take}
	if !s.mayEnd(part, take) {
		s.add(step, part.Last)
		return nil
	}
	all, known := s.read[part.Key()]
	if part.Transactions == 1 {
		all, known = []Transaction{{part.GTIDs, part.Last}}, true
	}
	if !known {
		s.unread, s.ends = &step, true
		return nil
	}
	s.cut(step, all)
	return nil
}

// lack refuses to go on without transactions, unless what is replayed already is as far as
// the target wants to go.
func (s *selector) lack(missing gtid.Set, parts []Key, otherwise core.Reason) *Refusal {
	if s.target.Kind == ToTime && !s.target.Time.After(s.plan.Reached) {
		s.ends = true
		return nil
	}
	r := &Refusal{Reason: otherwise, GTIDs: missing, Parts: parts, Nearest: s.plan.Reached}
	if len(parts) > 0 {
		r.Reason = PartMissing
	}
	if why, found := s.line.whyUnreadable(parts); found {
		r.Reason = why
	}
	return r
}

func (s *selector) add(step Step, last time.Time) {
	s.plan.Steps = append(s.plan.Steps, step)
	s.plan.Set = s.plan.Set.Union(step.Take)
	if last.After(s.plan.Reached) {
		s.plan.Reached = last
	}
}

// mayEnd reports whether the replay may end in this part, or before it.
func (s *selector) mayEnd(part Part, take gtid.Set) bool {
	switch s.target.Kind {
	case ToTime:
		return part.Last.After(s.target.Time)
	case ToGTIDs, BeforeGTIDs:
		return !take.Intersect(s.target.GTIDs).IsEmpty()
	default:
		return false
	}
}

// cut takes of a part what is up to the target.
func (s *selector) cut(step Step, all []Transaction) {
	var kept gtid.Set
	var last time.Time
	epoch := step.Pieces[0].Epoch
	for _, t := range all {
		if !step.Take.Contains(t.ID) || s.leave(epoch, t) {
			continue
		}
		if s.isBeyond(t) {
			s.ends = true
			break
		}
		kept = kept.Union(t.ID)
		if t.Committed.After(last) {
			last = t.Committed
		}
		if s.target.Kind == ToGTIDs && s.plan.Set.Union(kept).Contains(s.target.GTIDs) {
			s.ends = true
			break
		}
	}
	if !kept.IsEmpty() {
		s.add(Step{step.Pieces, kept}, last)
	}
}

// isBeyond reports whether the target ends before this transaction.
func (s *selector) isBeyond(t Transaction) bool {
	switch s.target.Kind {
	case ToTime:
		return t.Committed.After(s.target.Time)
	case BeforeGTIDs:
		return s.target.GTIDs.Contains(t.ID)
	default:
		return false
	}
}
