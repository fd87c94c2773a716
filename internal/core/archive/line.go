package archive

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// line is an archive in order, of which the promotions say what survived.
type line struct {
	branches []Branch // by epoch, each once
	parts    []Part   // by epoch and sequence, each once; nobody writes to it
	// overlap is a run that has to be expanded before anything can be told; nil if there is none.
	overlap *Part
	// unreadable objects, by epoch and sequence.
	unreadable []Unreadable
}

func lineOf(a Archive) line {
	l := line{branches: slices.Clone(a.Branches), unreadable: slices.Clone(a.Unreadable)}
	slices.SortStableFunc(l.unreadable, func(a, b Unreadable) int { return a.Key.compare(b.Key) })
	slices.SortStableFunc(l.branches, func(a, b Branch) int { return Key{Epoch: a.Epoch}.compare(Key{Epoch: b.Epoch}) })
	l.branches = onLine(slices.CompactFunc(l.branches, func(a, b Branch) bool { return a.Epoch == b.Epoch }))
	l.parts, l.overlap = ordered(a.Parts)
	return l
}

// onLine are those of all branches, by epoch, that lead to the newest. A branch may come to be
// in the store only when its primary is gone and the next one has gone on without it, from
// what was there: then it cuts nothing off, and what survived of it the next one archives.
func onLine(all []Branch) []Branch {
	out := slices.Clone(all)
	for i := len(out) - 1; i > 0; i-- {
		before := i
		for before > 0 && out[i].After > 0 && out[before-1].Epoch > out[i].After {
			before--
		}
		out = slices.Delete(out, before, i)
		i = before
	}
	return out
}

// surviving is what of a set that was executed in an epoch every later promotion had, and every
// later recovery of a group. Of recoveries until a branch was begun that branch tells, and not a later one:
// a status that was set back has forgotten what they held.
func (l line) surviving(epoch int64, set gtid.Set) gtid.Set {
	told := epoch
	for _, b := range l.branches {
		if b.Epoch > epoch {
			set = Same(set.Intersect(b.Start), told, b.Recoveries)
			told = b.Epoch
		}
	}
	return set
}

// next is the branch that goes on after an epoch; nil if there is none.
func (l line) next(epoch int64) *Branch {
	for i := range l.branches {
		if l.branches[i].Epoch > epoch {
			return &l.branches[i]
		}
	}
	return nil
}

// lost is what of such a set some later promotion was without.
func (l line) lost(epoch int64, set gtid.Set) gtid.Set {
	return set.Subtract(l.surviving(epoch, set))
}

// known is all that a replay may come by.
func (l line) known() (set gtid.Set) {
	for _, p := range l.parts {
		set = set.Union(l.surviving(p.Epoch, p.GTIDs))
	}
	return set
}

// LostBranch is what a promotion lost of an epoch before it, as far as it was archived.
type LostBranch struct {
	Epoch int64
	GTIDs gtid.Set
	// Steps are where it stands, in the order of the log. First and Last bound when it was
	// committed: they are of whole parts.
	Steps       []Step
	First, Last time.Time
}

// LostOf finds what was lost of an epoch.
func LostOf(all []LostBranch, epoch int64) (LostBranch, bool) {
	i := slices.IndexFunc(all, func(l LostBranch) bool { return l.Epoch == epoch })
	if i < 0 {
		return LostBranch{}, false
	}
	return all[i], true
}

// PrimaryOf names the instance that was primary in an epoch; "" when no branch tells.
func PrimaryOf(branches []Branch, epoch int64) string {
	i := slices.IndexFunc(branches, func(b Branch) bool { return b.Epoch == epoch })
	if i < 0 {
		return ""
	}
	return branches[i].Instance
}

// Lost lists by epoch what was archived, is never replayed, and did not come again from outside. A run of which some
// was lost, and some was not, has to be expanded first: then nothing is listed, and Lost is called again.
func Lost(a Archive) (out []LostBranch, expand *Part) {
	l := lineOf(a)
	if l.overlap != nil {
		return nil, l.overlap
	}
	known := l.known()
	for _, p := range l.parts {
		lost := l.lost(p.Epoch, p.GTIDs)
		lost = lost.Subtract(l.outside(lost).Intersect(known))
		if lost.IsEmpty() {
			continue
		}
		if p.IsRun() && !lost.Equal(p.GTIDs) {
			return nil, &p
		}
		if n := len(out); n == 0 || out[n-1].Epoch != p.Epoch {
			out = append(out, LostBranch{Epoch: p.Epoch, First: p.First})
		}
		b := &out[len(out)-1]
		pieces, _ := l.pieces(p)
		b.GTIDs, b.Steps = b.GTIDs.Union(lost), append(b.Steps, Step{pieces, lost})
		if p.First.Before(b.First) {
			b.First = p.First
		}
		if p.Last.After(b.Last) {
			b.Last = p.Last
		}
	}
	return out, nil
}

// maxHole is how many missing parts are told.
const maxHole = 100

// hole finds parts that lack below one in its branch and may have held what lacks. What was
// purged before it was archived stood in none. The beginning of a branch goes when it has
// expired, so that it counts only if what lacks stood there.
func (l line) hole(below Key, lacks gtid.Set) (missing []Key) {
	next := int64(0)
	for _, p := range l.parts {
		if p.Epoch != below.Epoch || p.Sequence > below.Sequence {
			continue
		}
		lacks = lacks.Subtract(p.Missing)
		if next == 0 && !p.Before.Intersect(lacks).IsEmpty() {
			next = 1
		}
		for ; next > 0 && next < p.Sequence && len(missing) < maxHole; next++ {
			missing = append(missing, Key{below.Epoch, next})
		}
		next = p.end().Sequence + 1
	}
	if lacks.IsEmpty() {
		return nil
	}
	return missing
}

// pieces of a part: itself, or those of its transaction. Those that lack are told.
func (l line) pieces(p Part) (all []Part, missing []Key) {
	for n := p.Sequence - max(p.Pieces, 1) + 1; n < p.Sequence; n++ {
		key := Key{p.Epoch, n}
		i, found := slices.BinarySearchFunc(l.parts, key, func(p Part, key Key) int { return p.Key().compare(key) })
		if !found || l.parts[i].Piece != n-p.Sequence+p.Pieces {
			missing = append(missing, key)
			continue
		}
		all = append(all, l.parts[i])
	}
	return append(all, p), missing
}

// offLine is what a backup holds that no replay from it can have: a promotion lost it. What a
// primary wrote as its server's own has numbers that nobody else gives, and it itself gives twice only
// if it lost them, see givenTwice: otherwise it is on the line if the newest primary had it, or wrote it,
// whatever epoch the backup names. That may be older than the data, as of a backup that went on while the
// primary changed, or newer, as of an instance that had not followed yet. So has what somebody else's server
// wrote, and the primary was given with its number, as by mysqlbinlog: the newest primary had it, or its
// branch holds it. Other numbers, as a group's, may be given again after they were lost: for them the epoch
// counts, and every promotion since.
func (l line) offLine(base Base) gtid.Set {
	own := l.own(base.End)
	lost := l.lost(base.Epoch, base.End.Subtract(own))
	if n := len(l.branches); n > 0 && l.branches[n-1].Epoch >= base.Epoch {
		newest := l.branches[n-1]
		has := newest.Start.Union(Reached(newest, l.last(newest.Epoch)))
		lost = lost.Union(own.Without(newest.ServerUUID).Subtract(has))
	}
	return lost.Union(l.givenTwice(base.Epoch).Intersect(own))
}

// givenTwice is what servers had in their logs as their own until an epoch, as far as parts tell, and had lost when
// they were promoted later, as by a disk that lost what it had confirmed. They give these numbers again.
func (l line) givenTwice(until int64) (twice gtid.Set) {
	wrote := map[string]gtid.Set{}
	for _, p := range l.parts {
		if p.Epoch <= until {
			wrote[p.ServerUUID] = wrote[p.ServerUUID].Union(p.Before.Union(p.GTIDs).Of(p.ServerUUID))
		}
	}
	for _, b := range l.branches {
		if b.Epoch > until && b.Numbers == OwnNumbers {
			twice = twice.Union(wrote[b.ServerUUID].Subtract(b.Start))
		}
	}
	return twice
}

// last part of an epoch; the zero value if there is none.
func (l line) last(epoch int64) Part {
	behind := func(p Part, key Key) int { return p.Key().compare(key) }
	i, _ := slices.BinarySearchFunc(l.parts, Key{Epoch: epoch + 1}, behind)
	if i == 0 || l.parts[i-1].Epoch != epoch {
		return Part{}
	}
	return l.parts[i-1]
}

// own is what of a set servers have written as their own. Of an archive that does not tell
// whose numbers its primaries gave, that is known of those only that have a branch.
func (l line) own(set gtid.Set) (own gtid.Set) {
	told := !slices.ContainsFunc(l.branches, func(b Branch) bool { return b.Numbers == "" })
	if told {
		own = set
	}
	for _, b := range l.branches {
		switch {
		case !told:
			own = own.Union(set.Of(b.ServerUUID))
		case b.Numbers != OwnNumbers:
			own = own.Without(b.Numbers)
		}
	}
	return own
}

// outside is what of a set was written by servers that never were primary, as by an external server that is followed.
// Whoever is promoted without some of it receives that from there, too, under the same numbers.
func (l line) outside(set gtid.Set) gtid.Set {
	set = l.own(set)
	for _, b := range l.branches {
		set = set.Without(b.ServerUUID)
	}
	return set
}

// branchless is an epoch, or a later one, of which there are parts and not the branch among all.
func (l line) branchless(all []Branch, since int64) (epoch int64, is bool) {
	for _, p := range l.parts {
		known := func(b Branch) bool { return b.Epoch == p.Epoch }
		if p.Epoch >= since && !slices.ContainsFunc(all, known) {
			return p.Epoch, true
		}
	}
	return 0, false
}

// unknownBranch is a branch that cannot be read, of an epoch or a later one: nobody knows what
// of that epoch survived.
func (l line) unknownBranch(since int64) *Unreadable {
	for i, u := range l.unreadable {
		if u.Key.Sequence == 0 && u.Key.Epoch >= since {
			return &l.unreadable[i]
		}
	}
	return nil
}

// unknownParts are those that cannot be read, of epochs that are meant.
func (l line) unknownParts(isMeant func(epoch int64) bool) (keys []Key) {
	for _, u := range l.unreadable {
		if u.Key.Sequence > 0 && isMeant(u.Key.Epoch) && len(keys) < maxHole {
			keys = append(keys, u.Key)
		}
	}
	return keys
}

// unknownEnd are the parts that cannot be read behind all that can be. What is read later
// tells of others whether they were needed; of these nothing does.
func (l line) unknownEnd() (keys []Key) {
	var end Key
	if n := len(l.parts); n > 0 {
		end = l.parts[n-1].end()
	}
	for _, u := range l.unreadable {
		if u.Key.Sequence > 0 && end.compare(u.Key) < 0 {
			keys = append(keys, u.Key)
		}
	}
	return keys
}

// whyUnreadable is the name of what is wrong with the first of some objects that cannot be read.
func (l line) whyUnreadable(keys []Key) (why core.Reason, found bool) {
	for _, u := range l.unreadable {
		if slices.Contains(keys, u.Key) {
			return u.Reason, true
		}
	}
	return "", false
}
