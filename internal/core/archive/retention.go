package archive

import (
	"cmp"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Stored is a complete base backup, by its manifest and by the store's listing.
type Stored struct {
	ID    string
	Epoch int64
	// Begin is surely in it, and nothing beyond End.
	Begin, End gtid.Set
	// Point is a moment shortly after that of which the data are, and Ended when all was
	// stored, both by the clock of its Job. A restore tries that which ended last first.
	Point, Ended time.Time
	// Written is when the store took the manifest, by the store's clock; zero when the
	// listing does not tell, and its age is not known then.
	Written time.Time
}

// since is the age of a backup: the latest of what three clocks may have told. One that was
// slow does not make it older.
func (s Stored) since() time.Time {
	return slices.MaxFunc([]time.Time{s.Point, s.Ended, s.Written}, time.Time.Compare)
}

// leadsAsFar reports whether it leads wherever another one does that is on the same line: it holds as much,
// and is replayed from no earlier on.
func (s Stored) leadsAsFar(other Stored) bool {
	return s.End.Contains(other.End) && s.Begin.Contains(other.Begin)
}

// Unfinished is what has no manifest: a backup that is being taken, or was given up.
type Unfinished struct {
	ID string
	// Modified is the last change of any of its objects, by the store's clock.
	Modified time.Time
}

// unfinishedKept is for how long what has no manifest is left alone.
const unfinishedKept = 7 * 24 * time.Hour

// Holdings is all that is kept of a cluster, and for how long it has to be.
type Holdings struct {
	Bases      []Stored
	Unfinished []Unfinished
	Archive    Archive
	// Window is how far back every moment must stay restorable, as far as it is; Minimum is
	// how many of the newest backups stay in any case, at least one.
	Window  time.Duration
	Minimum int
	// Local is the time by the clock here, and Store by that of the store: when it took what
	// was just written. The earlier one counts, so that a clock which runs ahead removes
	// nothing more. Zero is not known, and nothing goes then.
	Local, Store time.Time
}

// Why nothing, or less, is removed.
const (
	// RetentionYoung says that no backup is as old as the window.
	RetentionYoung = core.RetentionYoung
	// RetentionTimeUnknown says that the store's listing does not have yet what was just written.
	RetentionTimeUnknown = core.RetentionTimeUnknown
	// RetentionBranchMissing says that there are parts of an epoch of which nobody knows how it
	// began, and so nobody knows what survived.
	RetentionBranchMissing = core.RetentionBranchMissing
)

// Keeps is why a backup stays.
type Keeps string

// Why backups stay.
const (
	KeepsWindow  Keeps = "in the window"
	KeepsAnchor  Keeps = "the window begins with it"
	KeepsMore    Keeps = "it holds more than the one that the window begins with"
	KeepsMinimum Keeps = "among the newest"
	KeepsUnknown Keeps = "its age is not known"
	KeepsAll     Keeps = "nothing is removed"
	// KeepsUnreadable is for the caller, who gives only what can be read.
	KeepsUnreadable Keeps = "its manifest cannot be read"
)

// Kept is a backup that stays.
type Kept struct {
	ID  string
	Why Keeps
}

// Expiry is what may go: first Bases, the oldest first, then Parts, in order. However much
// of it is removed in this order, and whatever of that a later call finds, each moment and
// each transaction from Horizon on is restored as before.
type Expiry struct {
	Bases      []string
	Unfinished []string
	Parts      []Span
	// Expand are runs that have to be expanded first: then nothing goes, and Expire is called again.
	Expand []Part
	// Horizon is where the window begins.
	Horizon time.Time
	// Anchor is the backup that the window begins with; "" if there is none, and then no
	// backup and no part goes, and Held tells why.
	Anchor string
	Held   core.Reason
	// Since is the earliest moment that is restorable afterwards; zero if there is none.
	Since time.Time
	Kept  []Kept
}

// Expire decides what of a cluster's backups and archive may be removed. A backup that is
// damaged is not given to it, and stays. Of a run of which not all parts go or stay, it has to know
// them.
func Expire(h Holdings) Expiry {
	e := &expiring{Holdings: h, line: lineOf(h.Archive)}
	if e.line.overlap != nil {
		return Expiry{Expand: []Part{*e.line.overlap}}
	}
	e.Bases = slices.Clone(h.Bases)
	slices.SortFunc(e.Bases, func(a, b Stored) int { return cmp.Or(b.Ended.Compare(a.Ended), cmp.Compare(a.ID, b.ID)) })
	now := h.Local
	if h.Store.Before(now) {
		now = h.Store
	}
	out := Expiry{Horizon: now.Add(-h.Window), Held: e.doubt()}
	e.horizon = out.Horizon
	if h.Local.IsZero() || h.Store.IsZero() {
		out.Horizon = time.Time{}
	} else {
		out.Unfinished = e.unfinished(now)
	}
	anchor := -1
	if out.Held == "" {
		if anchor = e.anchor(); anchor < 0 {
			out.Held = RetentionYoung
		}
	}
	kept := e.bases(&out, anchor)
	if anchor >= 0 {
		out.Anchor, out.Parts = e.Bases[anchor].ID, e.parts(kept)
	}
	if len(e.expand) > 0 {
		return Expiry{Expand: e.expand}
	}
	return out
}

// expiring is one Expire; its Bases are in the order in which a restore tries them.
type expiring struct {
	Holdings
	line    line
	horizon time.Time
	expand  []Part
}

// doubt is why nothing can be told; "" if it can.
func (e *expiring) doubt() core.Reason {
	if e.Local.IsZero() || e.Store.IsZero() {
		return RetentionTimeUnknown
	}
	for _, u := range e.line.unreadable {
		return u.Reason // whatever it holds may be needed
	}
	if _, is := e.line.branchless(e.Archive.Branches, 0); is {
		return BranchMissing
	}
	return ""
}

// unfinished are those of which nothing can come any more. One backup is taken at a time:
// what was there before a complete one was given up. The age alone would go by one clock,
// and that order alone by no time at all.
func (e *expiring) unfinished(now time.Time) (out []string) {
	var newest time.Time
	for _, b := range e.Bases {
		if b.Written.After(newest) {
			newest = b.Written
		}
	}
	for _, u := range e.Holdings.Unfinished {
		if u.Modified.Before(now.Add(-unfinishedKept)) && u.Modified.Before(newest) {
			out = append(out, u.ID)
		}
	}
	slices.Sort(out)
	return out
}

func (e *expiring) onLine(b Stored) bool {
	return e.line.offLine(Base{Epoch: b.Epoch, End: b.End}).IsEmpty()
}

// anchor finds the newest backup from which the whole window can be restored; -1 if there
// is none. It holds no transaction that is in the window by the clock of the primary, which
// may go ahead of those that tell a backup's age: to restore to before that transaction
// takes an earlier backup. Nor does it hold any of which that is not known yet, see isArchived.
func (e *expiring) anchor() int {
	var young gtid.Set
	for i, p := range e.line.parts {
		if p.IsRun() && !p.Last.Before(e.horizon) && p.First.Before(e.horizon) {
			e.expand = append(e.expand, p)
		}
		if !p.Last.Before(e.horizon) {
			young = young.Union(e.line.surviving(p.Epoch, p.GTIDs.Union(e.unlisted(i))))
		}
	}
	return slices.IndexFunc(e.Bases, func(b Stored) bool {
		return e.isExpired(b) && e.onLine(b) && young.Intersect(b.End).IsEmpty() && e.isArchived(b)
	})
}

// unlisted is what stands in parts of the branch before such a one, and behind the one that is listed before it: a
// listing may lack some for a while, which are no older than that for all that is known.
func (e *expiring) unlisted(i int) gtid.Set {
	p := e.line.parts[i]
	if p.Sequence == 1 {
		return gtid.Set{}
	}
	n := slices.IndexFunc(e.line.branches, func(b Branch) bool { return b.Epoch == p.Epoch })
	if n < 0 {
		return gtid.Set{}
	}
	var before Part
	if i > 0 && e.line.parts[i-1].Epoch == p.Epoch {
		before = e.line.parts[i-1]
	}
	return p.Before.Subtract(Reached(e.line.branches[n], before)).Subtract(p.Missing)
}

// isArchived reports whether the archive has come to the end of a backup. What is archived after that may be in the
// window by the clock of the primary that archives it: the next one does so with what the former one did not come to,
// as it stands in its own log. Where nothing comes for as long as the window again, nothing is archived any more.
func (e *expiring) isArchived(b Stored) bool {
	n := len(e.line.branches)
	if n == 0 || b.since().Before(e.horizon.Add(-e.Window)) {
		return true
	}
	newest := e.line.branches[n-1]
	return Reached(newest, e.line.last(newest.Epoch)).Contains(b.End)
}

// isExpired reports whether the backup is older than the window, by every clock.
func (e *expiring) isExpired(b Stored) bool {
	return !b.Written.IsZero() && !b.since().After(e.horizon)
}

// bases decides which backups go, and tells which of those that stay can be replayed on. One that
// holds more than the anchor stays, though it ended earlier by the clock of its Job: what lies
// between the two may be missing in the archive.
func (e *expiring) bases(out *Expiry, anchor int) (kept []Stored) {
	usable := 0
	var least gtid.Set // what all hold that stay so far
	for i, b := range e.Bases {
		onLine := e.onLine(b)
		if onLine {
			usable++
		}
		why := KeepsWindow
		switch {
		case anchor < 0:
			why = KeepsAll
		case i == anchor:
			why = KeepsAnchor
		case i < anchor || b.Ended.Equal(e.Bases[anchor].Ended):
		case b.Written.IsZero():
			why = KeepsUnknown
		case onLine && usable <= max(e.Minimum, 1):
			why = KeepsMinimum
		case onLine && !e.Bases[anchor].leadsAsFar(b):
			why = KeepsMore
		case e.isExpired(b):
			out.Bases = append(out.Bases, b.ID)
			continue
		}
		out.Kept = append(out.Kept, Kept{b.ID, why})
		if !onLine {
			continue
		}
		kept = append(kept, b)
		// What holds more than one that looks newer is by a clock that was behind, or the other by one that was
		// ahead: nobody knows whether a restore comes to its moment.
		if inOrder := len(kept) == 1 || least.Contains(b.End); inOrder && (out.Since.IsZero() ||
			b.Point.Before(out.Since)) {
			out.Since = b.Point
		}
		if least = least.Intersect(b.End); len(kept) == 1 {
			least = b.End
		}
	}
	slices.Reverse(out.Bases)
	return kept
}

// parts are those that no restore needs any more: the beginnings of branches.
func (e *expiring) parts(kept []Stored) (out []Span) {
	held := kept[0].Begin
	for _, b := range kept[1:] {
		held = held.Intersect(b.Begin)
	}
	for all := e.line.parts; len(all) > 0; {
		n := slices.IndexFunc(all, func(p Part) bool { return p.Epoch != all[0].Epoch })
		if n < 0 {
			n = len(all)
		}
		for _, p := range all[:e.beginning(all[:n], held)] {
			out = appendSpan(out, p.Span())
		}
		all = all[n:]
	}
	return out
}

// beginning is how many of the parts of one branch may go. The last one stays: who goes on
// with the branch, or begins the next one, finds in it what the archive holds. They look for
// it from the newest part on that is listed, and a listing may lack the last ones for a
// while: so the newest one that is older than the window stays, too. Pieces of a transaction
// go with their last one, or once it is seen that none follows.
func (e *expiring) beginning(parts []Part, held gtid.Set) (n int) {
	before, last := 0, len(parts)-1
	for i, p := range parts[:last] {
		if !e.mayGo(p, held) {
			if p.IsRun() && p.Last.Before(e.horizon) {
				e.expand = append(e.expand, p) // some of its parts may, and so all that are before it
			}
			break
		}
		next := parts[i+1]
		if p.Piece > 0 && p.Pieces == 0 && next.Piece == p.Piece+1 {
			continue
		}
		before, n = n, i+1
	}
	// What stands before one that is young, and is not listed, may be as young for all that is known: the one before it
	// stays, or the next look would take what the anchor holds for that.
	isOld := parts[last].Last.Before(e.horizon) && parts[n].Last.Before(e.horizon)
	switch stays := max(n-1, 0); {
	case !isOld && parts[stays].IsRun() && n > 0:
		e.expand = append(e.expand, parts[stays]) // its last part stays
	case isOld && parts[last].IsRun() && n == last:
		e.expand = append(e.expand, parts[last])
	}
	if !isOld {
		return before
	}
	return n
}

// mayGo reports whether the part may be removed. All backups that stay must hold what survived of
// it; and all of it, and the loss of what did not survive, must be older than the window.
func (e *expiring) mayGo(p Part, held gtid.Set) bool {
	if !p.Last.Before(e.horizon) || !held.Contains(e.line.surviving(p.Epoch, p.GTIDs)) {
		return false
	}
	rest := p.GTIDs
	for _, b := range e.line.branches {
		if b.Epoch <= p.Epoch {
			continue
		}
		survived := rest.Intersect(b.Start)
		if !b.CreatedAt.Before(e.horizon) && !survived.Equal(rest) {
			return false
		}
		rest = survived
	}
	return true
}
