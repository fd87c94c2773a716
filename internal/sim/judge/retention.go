package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// restored is what a restore comes to.
type restored struct {
	from   string
	set    gtid.Set
	reason core.Reason
}

// Restore tries the backups as the product does, that which ended last first; of a restore to the latest, one that
// looks older and holds more comes before that.
func (s *Store) Restore(bases []archive.Stored, target archive.Target) (out restored) {
	bases = slices.Clone(bases)
	slices.SortStableFunc(bases, func(a, b archive.Stored) int { return b.Ended.Compare(a.Ended) })
	var tried archive.Tried
	for i, b := range bases {
		if tried.Skips(b.End) {
			continue
		}
		got := s.Select(baseOf(b), target)
		if got.Refusal == nil {
			return s.most(restored{b.ID, got.Plan.Set, ""}, b.Epoch, bases[i+1:], target)
		}
		if out.reason == "" {
			out.reason = got.Refusal.Reason
		}
		if !tried.GoesOn(got.Refusal, b.Begin) {
			break
		}
	}
	return out
}

func baseOf(b archive.Stored) archive.Base {
	return archive.Base{Epoch: b.Epoch, End: b.End, Time: b.Ended}
}

// most is what a restore to the latest, or of a backup alone, comes to with the backup that holds most.
func (s *Store) most(is restored, epoch int64, older []archive.Stored, target archive.Target) restored {
	if target.Kind != archive.Latest && target.Kind != archive.Immediate {
		return is
	}
	for _, b := range older {
		if !archive.HoldsMore(b.Begin, b.Epoch, is.set, epoch) {
			continue
		}
		if got := s.Select(baseOf(b), target); got.Refusal == nil {
			is, epoch = restored{b.ID, got.Plan.Set, ""}, b.Epoch
		}
	}
	return is
}

// Removed is what retention has taken.
type Removed struct {
	Bases []string
	Parts []archive.Key
}

// Retain asks the product what may go, and takes so much of it, in its order, as a retention that is
// interrupted. From the horizon on each moment and each transaction is restored as before: some
// of them are tried. It says what is wrong.
func (s *Store) Retain(rng *rand.Rand, h archive.Holdings, expire func(archive.Holdings) archive.Expiry) (out Removed,
	why string) {
	out = taken(s.Expiry(rng, h, expire), rng)
	if len(out.Bases)+len(out.Parts) == 0 {
		return out, ""
	}
	left := &Store{Archive: s.Archive, Content: s.Content}
	left.Parts = slices.DeleteFunc(slices.Clone(s.Parts), func(p archive.Part) bool {
		return slices.Contains(out.Parts, p.Key())
	})
	bases := slices.DeleteFunc(slices.Clone(h.Bases), func(b archive.Stored) bool {
		return slices.Contains(out.Bases, b.ID)
	})
	horizon := h.Local.Add(-h.Window)
	if h.Store.Before(h.Local) {
		horizon = h.Store.Add(-h.Window)
	}
	if why = left.Lacks(rng, bases, s, h.Bases, horizon, h.Local); why != "" {
		why = fmt.Sprintf("retention to %s took %v: %s", horizon, out, why)
	}
	return out, why
}

// Expiry asks the product what may go of the archive, of which stretches of parts are in bundles.
func (s *Store) Expiry(rng *rand.Rand, h archive.Holdings,
	expire func(archive.Holdings) archive.Expiry) archive.Expiry {
	merged := s.Merged(rng)
	h.Archive = merged.Archive
	e := expire(h)
	for len(e.Expand) > 0 {
		for _, run := range e.Expand {
			merged.expand(run)
		}
		h.Archive = merged.Archive
		e = expire(h)
	}
	return e
}

// Lacks says what from a horizon on is not restored any more, or otherwise, as it was from another store
// with other backups: of before retention, or of all that there ever was. Some moments and transactions are
// tried.
func (s *Store) Lacks(rng *rand.Rand, bases []archive.Stored, before *Store, had []archive.Stored,
	horizon, now time.Time) string {
	for _, target := range before.targets(rng, horizon, now) {
		was, is := before.Restore(had, target), s.Restore(bases, target)
		if was.reason == "" && (is.reason != "" || !is.set.Equal(was.set)) {
			return fmt.Sprintf("a restore to %s (kind %d, %s) held %s, from %s, and now %s %s", target.GTIDs,
				target.Kind, target.Time, was.set, was.from, is.reason, is.set)
		}
	}
	return ""
}

// taken is the first part of what may go.
func taken(e archive.Expiry, rng *rand.Rand) (out Removed) {
	out.Bases = e.Bases
	for _, span := range e.Parts {
		for n := span.First; n <= span.Last; n++ {
			out.Parts = append(out.Parts, archive.Key{Epoch: span.Epoch, Sequence: n})
		}
	}
	if all := len(out.Bases) + len(out.Parts); all > 0 && rng.IntN(3) == 0 {
		n := rng.IntN(all + 1)
		out.Parts = out.Parts[:max(0, n-len(out.Bases))]
		out.Bases = out.Bases[:min(n, len(out.Bases))]
	}
	return out
}

// targets are some from a horizon on.
func (s *Store) targets(rng *rand.Rand, horizon, now time.Time) []archive.Target {
	out := []archive.Target{{}}
	if span := now.Sub(horizon); span > 0 {
		for _, at := range []time.Time{horizon, horizon.Add(time.Duration(rng.Int64N(int64(span))))} {
			out = append(out, archive.Target{Kind: archive.ToTime, Time: at})
		}
	}
	for range 3 {
		if len(s.Parts) == 0 {
			break
		}
		all := s.Content(s.Parts[rng.IntN(len(s.Parts))].Key())
		if w := all[rng.IntN(len(all))]; !w.Committed.Before(horizon) {
			out = append(out, archive.Target{Kind: archive.ToGTIDs, GTIDs: w.ID},
				archive.Target{Kind: archive.BeforeGTIDs, GTIDs: w.ID})
		}
	}
	return out
}
