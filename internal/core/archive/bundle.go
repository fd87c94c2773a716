package archive

import (
	"slices"
	"time"
)

const (
	// BundleParts and BundleBytes are the most that a bundle holds: who reads one part of it has
	// all of it in memory.
	BundleParts = 1024
	BundleBytes = 8 << 20
	// bundleLeast is how many parts are worth a bundle; none of them is larger than smallPart.
	bundleLeast = 16
	smallPart   = BundleBytes / bundleLeast
	// settled is how old parts are that are bundled, and bundles of which the parts go: a listing
	// may be behind, and who goes on with a branch looks for its end.
	settled = time.Hour
)

// Single is a part that lies in the store as an object of its own, as the listing tells.
type Single struct {
	Key Key
	// Stored is how many bytes the object has, and Written when the store took it, by its clock.
	Stored  int64
	Written time.Time
}

// Bundle is an object with consecutive parts of an epoch, from First to Last.
type Bundle struct {
	Epoch, First, Last int64
	// Written is when the store took it, by its clock.
	Written time.Time
}

// Holds reports whether a part is in it.
func (b Bundle) Holds(k Key) bool {
	return k.Epoch == b.Epoch && k.Sequence >= b.First && k.Sequence <= b.Last
}

// Cover is what some bundles hold together, in order.
type Cover []Bundle

// CoverOf puts bundles together that hold the same part.
func CoverOf(bundles []Bundle) (out Cover) {
	all := slices.Clone(bundles)
	slices.SortFunc(all, func(a, b Bundle) int { return Key{a.Epoch, a.First}.compare(Key{b.Epoch, b.First}) })
	for _, b := range all {
		if n := len(out); n > 0 && out[n-1].Epoch == b.Epoch && b.First <= out[n-1].Last {
			out[n-1].Last = max(out[n-1].Last, b.Last)
			continue
		}
		out = append(out, b)
	}
	return out
}

// Holds reports whether a part is in any of them.
func (c Cover) Holds(k Key) bool {
	i, found := slices.BinarySearchFunc(c, k, func(b Bundle, k Key) int { return Key{b.Epoch, b.First}.compare(k) })
	return found || i > 0 && c[i-1].Holds(k)
}

// Overlapping are the bundles that have a part in common with another one.
func Overlapping(bundles []Bundle) map[Bundle]bool {
	out := map[Bundle]bool{}
	all := slices.Clone(bundles)
	slices.SortFunc(all, func(a, b Bundle) int { return Key{a.Epoch, a.First}.compare(Key{b.Epoch, b.First}) })
	for i := 1; i < len(all); i++ {
		widest := all[i-1] // of those before, the one that reaches furthest
		if all[i].Epoch == widest.Epoch && all[i].First <= widest.Last {
			out[widest], out[all[i]] = true, true
			if widest.Last > all[i].Last {
				all[i], all[i-1] = widest, all[i]
			}
		}
	}
	return out
}

// Settled are the bundles whose parts need no object of their own any more. now is by the store's
// clock, and not later than by the clock here.
func Settled(bundles []Bundle, now time.Time) (out []Bundle) {
	for _, b := range bundles {
		if isSettled(b.Written, now) {
			out = append(out, b)
		}
	}
	return out
}

// Merge decides which parts are bundled, consecutive ones each time. Of each epoch the
// newest part that is settled stays as it is, and all that are younger: shipping, and the branch
// behind, go on from there, with listings that may lack the last ones. now is by the store's
// clock, and not later than by the clock here. It puts singles in order.
func Merge(singles []Single, bundles []Bundle, now time.Time) (out [][]Key) {
	cover := CoverOf(bundles)
	slices.SortFunc(singles, func(a, b Single) int { return a.Key.compare(b.Key) })
	for len(singles) > 0 {
		n := slices.IndexFunc(singles, func(s Single) bool { return s.Key.Epoch != singles[0].Key.Epoch })
		if n < 0 {
			n = len(singles)
		}
		out = append(out, runs(mergeable(singles[:n], now), cover)...)
		singles = singles[n:]
	}
	return out
}

func isSettled(written, now time.Time) bool {
	return !written.IsZero() && !written.After(now.Add(-settled))
}

// mergeable is the beginning of an epoch that is left to nobody who goes on with it.
func mergeable(epoch []Single, now time.Time) []Single {
	n := slices.IndexFunc(epoch, func(s Single) bool { return !isSettled(s.Written, now) })
	if n < 0 {
		n = len(epoch)
	}
	return epoch[:max(n-1, 0)]
}

// runs are consecutive small parts that no bundle holds yet, as many together as fit.
func runs(epoch []Single, cover Cover) (out [][]Key) {
	var run []Key
	var bytes int64
	end := func() {
		if len(run) >= bundleLeast {
			out = append(out, run)
		}
		run, bytes = nil, 0
	}
	for _, s := range epoch {
		if cover.Holds(s.Key) || s.Stored > smallPart {
			end()
			continue
		}
		n := len(run)
		if n == BundleParts || bytes+s.Stored > BundleBytes || n > 0 && run[n-1].Sequence+1 != s.Key.Sequence {
			end()
		}
		run, bytes = append(run, s.Key), bytes+s.Stored
	}
	end()
	return out
}
