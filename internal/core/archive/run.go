package archive

import (
	"errors"
	"slices"
)

// A run stands for up to BundleParts parts, of a bundle or by themselves, so that an archive needs
// memory for each run, and not for each part. It is a Part with the number of its last one in Through:
// the GTIDs of all of them, what was Before the first, the earliest First and the latest Last, and the
// sums of Transactions and Size. Whoever decides takes a run or leaves it as a whole where that is what
// would become of each of its parts, and otherwise asks for them: see Archive.Expand.

// RunsOf puts parts together, as far as they are plain; what is not stays as it is.
// Summaries of bundles have runs in them: whoever changes what is plain, or BundleParts, changes their
// format. Plain parts follow one another in number and in the log, in one format, and each is whole: it
// holds transactions, all of what stood before it is in those before, and nothing was purged.
func RunsOf(parts []Part) (all []Part) {
	for len(parts) > 0 {
		run, n := runOf(parts)
		all, parts = append(all, run), parts[n:]
	}
	return all
}

// runOf puts as many parts together as begin a list; one that nothing is added to stays as it is.
func runOf(parts []Part) (run Part, n int) {
	run = parts[0]
	if !run.isPlain() {
		return run, 1
	}
	seen := run.Before.Union(run.GTIDs)
	for n = 1; n < min(len(parts), BundleParts); n++ {
		p := parts[n]
		if !p.isPlain() || !p.isOfRun(run, int64(n)) || !p.Before.Equal(seen) {
			break
		}
		seen = seen.Union(p.GTIDs)
		if p.First.Before(run.First) {
			run.First = p.First
		}
		if p.Last.After(run.Last) {
			run.Last = p.Last
		}
		run.Transactions, run.Size = run.Transactions+p.Transactions, run.Size+p.Size
	}
	if n == 1 {
		return run, n
	}
	run.GTIDs = seen.Subtract(run.Before)
	run.Through, run.SHA256 = parts[n-1].Sequence, ""
	return run, n
}

// IsRunOf reports whether the part is a run that stands for just these parts.
func (p Part) IsRunOf(parts []Part) bool {
	if len(parts) == 0 {
		return false
	}
	run, n := runOf(parts)
	return n == len(parts) && p.isSameRun(run)
}

// isPlain reports whether the part is a single one, a transaction is whole in it, and it adds
// to what stood before.
func (p Part) isPlain() bool {
	return !p.IsRun() && p.Piece == 0 && p.Pieces == 0 && p.Missing.IsEmpty() && !p.GTIDs.IsEmpty() &&
		p.GTIDs.Intersect(p.Before).IsEmpty() && !p.Last.Before(p.First)
}

// isOfRun reports whether the part is so many behind the first one of a run, and written alike.
func (p Part) isOfRun(run Part, n int64) bool {
	return p.Epoch == run.Epoch && p.Sequence == run.Sequence+n && p.Format == run.Format &&
		p.Cluster == run.Cluster && p.ServerUUID == run.ServerUUID && p.Recipient == run.Recipient
}

// IsRun reports whether the part stands for several parts.
func (p Part) IsRun() bool { return p.Through > 0 }

// Span is the part, or all parts of a run.
func (p Part) Span() Span { return Span{p.Epoch, p.Sequence, max(p.Sequence, p.Through)} }

// end is the key of the last part of a run, or of the part.
func (p Part) end() Key { return Key{p.Epoch, max(p.Sequence, p.Through)} }

// Span is consecutive parts of an epoch, from First to Last.
type Span struct{ Epoch, First, Last int64 }

// Count of the parts.
func (s Span) Count() int64 { return s.Last - s.First + 1 }

// appendSpan adds parts that come behind all others.
func appendSpan(all []Span, s Span) []Span {
	if n := len(all) - 1; n >= 0 && all[n].Epoch == s.Epoch && all[n].Last+1 == s.First {
		all[n].Last = s.Last
		return all
	}
	return append(all, s)
}

// errOtherParts says that what was read are not the parts for which a run stands.
var errOtherParts = errors.New("these are not the parts that it had when the archive was listed")

// Expand puts parts in the place of the run that stands for them, in the archive itself: whoever
// has a copy of it must not use that any more. An error is that they are others.
func (a *Archive) Expand(run Part, parts []Part) error {
	if !run.IsRunOf(parts) {
		return errOtherParts
	}
	isIt := func(p Part) bool { return p.Key() == run.Key() && p.Through == run.Through }
	i := slices.IndexFunc(a.Parts, isIt)
	if i < 0 {
		return errOtherParts
	}
	a.Parts = slices.Replace(a.Parts, i, i+1, parts...)
	rest := slices.DeleteFunc(a.Parts[i+len(parts):], isIt) // found twice
	a.Parts = a.Parts[:i+len(parts)+len(rest)]
	return nil
}

func (p Part) isSameRun(other Part) bool {
	return p.Span() == other.Span() && p.isOfRun(other, 0) && p.Before.Equal(other.Before) &&
		p.GTIDs.Equal(other.GTIDs) && p.First.Equal(other.First) && p.Last.Equal(other.Last) &&
		p.Transactions == other.Transactions && p.Size == other.Size
}

// Expand divides the step of a run into those of its parts.
func (s Step) Expand(parts []Part) (all []Step, err error) {
	if !s.Pieces[0].IsRunOf(parts) {
		return nil, errOtherParts
	}
	for _, p := range parts {
		if take := s.Take.Intersect(p.GTIDs); !take.IsEmpty() {
			all = append(all, Step{[]Part{p}, take})
		}
	}
	return all, nil
}

// Run is what the step takes the parts of; false if it is of one part.
func (s Step) Run() (run Part, is bool) { return s.Pieces[0], s.Pieces[0].IsRun() }

// inOrder reports whether the parts are in order by number, and nothing is there twice.
func inOrder(parts []Part) bool {
	for i := range parts[min(1, len(parts)):] {
		if parts[i].end().compare(parts[i+1].Key()) >= 0 {
			return false
		}
	}
	return true
}

// ordered are parts by number, each once. A run that has a part in common with another one, or with
// what lies by itself, has to be expanded first; nil if there is none.
func ordered(parts []Part) (out []Part, overlap *Part) {
	if inOrder(parts) {
		return parts, nil
	}
	out = slices.Clone(parts)
	slices.SortStableFunc(out, func(a, b Part) int { return a.Key().compare(b.Key()) })
	isSame := func(a, b Part) bool { return a.Key() == b.Key() && a.Through == b.Through }
	out = slices.CompactFunc(out, isSame)
	for i := range out[min(1, len(out)):] {
		if a, b := out[i], out[i+1]; (a.IsRun() || b.IsRun()) && a.end().compare(b.Key()) >= 0 {
			if !a.IsRun() {
				a = b
			}
			return out, &a
		}
	}
	return out, nil
}
