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

// Merging is what to do about parts that are small.
type Merging struct {
	// Bundles are to be written, each of consecutive parts.
	Bundles [][]Key
	// Settled are the bundles whose parts need no object of their own any more.
	Settled []Bundle
}

// Merge decides which parts are bundled, and which bundles take their place. Of each epoch the
// newest part that is settled stays as it is, and all that are younger: shipping, and the branch
// behind, go on from there, with listings that may lack the last ones. now is by the store's
// clock, and not later than by the clock here.
func Merge(singles []Single, bundles []Bundle, now time.Time) (out Merging) {
	for _, b := range bundles {
		if isSettled(b.Written, now) {
			out.Settled = append(out.Settled, b)
		}
	}
	singles = slices.Clone(singles)
	slices.SortFunc(singles, func(a, b Single) int { return a.Key.compare(b.Key) })
	for len(singles) > 0 {
		n := slices.IndexFunc(singles, func(s Single) bool { return s.Key.Epoch != singles[0].Key.Epoch })
		if n < 0 {
			n = len(singles)
		}
		out.Bundles = append(out.Bundles, runs(mergeable(singles[:n], now), bundles)...)
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
func runs(epoch []Single, bundles []Bundle) (out [][]Key) {
	var run []Key
	var bytes int64
	end := func() {
		if len(run) >= bundleLeast {
			out = append(out, run)
		}
		run, bytes = nil, 0
	}
	for _, s := range epoch {
		held := slices.ContainsFunc(bundles, func(b Bundle) bool { return b.Holds(s.Key) })
		if held || s.Stored > smallPart {
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
