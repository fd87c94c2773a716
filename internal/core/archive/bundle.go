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
	// Written is when the store took it, by its clock, and Stored how many bytes the object has.
	Written time.Time
	Stored  int64
}

// Span of its parts.
func (b Bundle) Span() Span { return Span{b.Epoch, b.First, b.Last} }

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

// Merging decides which parts of an epoch are bundled, consecutive ones each time. The newest part
// that is settled stays as it is, and all that are younger: shipping, and the branch behind, go on
// from there, with listings that may lack the last ones. It is told of the parts in order, some at a
// time, and knows no more of them than a bundle holds. Now is by the store's clock, and not later than
// by the clock here.
type Merging struct {
	Now time.Time
	// newest of those that are settled, unless a bundle holds it or it is large, and whether it is there.
	newest             Single
	hasNewest, isApart bool
	// run are those before it that are to be in one bundle, and bytes what they have together.
	run   []Key
	bytes int64
	// ended tells whether what comes is not settled, or not surely.
	ended bool
}

// Add tells of parts behind all others, and gives what is to be bundled now. Cover are the bundles
// that hold any of them.
func (m *Merging) Add(singles []Single, cover Cover) (out [][]Key) {
	for _, s := range singles {
		if m.ended = m.ended || !isSettled(s.Written, m.Now); m.ended {
			return append(out, m.End()...)
		}
		if m.hasNewest {
			out = append(out, m.take()...)
		}
		m.newest, m.hasNewest, m.isApart = s, true, cover.Holds(s.Key) || s.Stored > smallPart
	}
	return out
}

// End gives what is left to be bundled when all parts are told.
func (m *Merging) End() [][]Key {
	run := m.run
	m.run, m.bytes = nil, 0
	if len(run) < bundleLeast {
		return nil
	}
	return [][]Key{run}
}

// take adds the newest part, behind which there is another one, to the others, as many together as fit.
func (m *Merging) take() (out [][]Key) {
	s, n := m.newest, len(m.run)
	if m.isApart || n == BundleParts || m.bytes+s.Stored > BundleBytes ||
		n > 0 && m.run[n-1].Sequence+1 != s.Key.Sequence {
		out = m.End()
	}
	if !m.isApart {
		m.run, m.bytes = append(m.run, s.Key), m.bytes+s.Stored
	}
	return out
}

// Around is what can be bundled of consecutive parts without some of them.
func Around(keys []Key, without map[Key]bool) (out [][]Key) {
	for len(keys) > 0 {
		n := slices.IndexFunc(keys, func(k Key) bool { return without[k] })
		if n < 0 {
			n = len(keys)
		}
		if n >= bundleLeast {
			out = append(out, keys[:n])
		}
		keys = keys[min(n+1, len(keys)):]
	}
	return out
}

func isSettled(written, now time.Time) bool {
	return !written.IsZero() && !written.After(now.Add(-settled))
}
