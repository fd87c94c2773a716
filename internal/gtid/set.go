package gtid

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// Set is an immutable set of GTIDs. Its zero value is the empty set. A Set may
// be copied and shared between goroutines freely; only UnmarshalText replaces
// the value it is called on. Compare sets with Equal.
type Set struct {
	// groups is sorted by compareKeys, has each key once and no group without
	// intervals, and is nil for the empty set: equal sets look alike, so that
	// Equal need not normalise and an empty Set is always the zero value.
	groups []group
}

// group holds the transactions of one source under one tag. Groups share their
// intervals between Sets; nobody may write to them once a Set holds them.
type group struct {
	uuid      uuid
	tag       string // lower case; empty for untagged transactions
	intervals []interval
}

// compareKeys orders groups as servers print them: untagged before tagged.
func compareKeys(a, b group) int {
	if c := bytes.Compare(a.uuid[:], b.uuid[:]); c != 0 {
		return c
	}
	return cmp.Compare(a.tag, b.tag)
}

// IsEmpty reports whether s holds no transaction.
func (s Set) IsEmpty() bool { return len(s.groups) == 0 }

// Equal reports whether both sets hold the same transactions.
func (s Set) Equal(other Set) bool {
	return slices.EqualFunc(s.groups, other.groups, func(a, b group) bool {
		return compareKeys(a, b) == 0 && slices.Equal(a.intervals, b.intervals)
	})
}

// Contains reports whether s holds every transaction of other, as
// GTID_SUBSET(other, s) does. Every set contains itself and the empty set.
func (s Set) Contains(other Set) bool {
	rest := s.groups
	for _, g := range other.groups {
		for len(rest) > 0 && compareKeys(rest[0], g) < 0 {
			rest = rest[1:]
		}
		if len(rest) == 0 || compareKeys(rest[0], g) != 0 ||
			!containsIntervals(rest[0].intervals, g.intervals) {
			return false
		}
	}
	return true
}

// Union returns the transactions that are in s or in other.
func (s Set) Union(other Set) Set {
	return s.merge(other, operation{
		keepLeft: true, keepRight: true, both: uniteIntervals,
	})
}

// Subtract returns the transactions of s that are not in other, as
// GTID_SUBTRACT(s, other) does.
func (s Set) Subtract(other Set) Set {
	return s.merge(other, operation{keepLeft: true, both: subtractIntervals})
}

// Intersect returns the transactions that are in both sets.
func (s Set) Intersect(other Set) Set {
	return s.merge(other, operation{both: intersectIntervals})
}

// Holes returns the transactions that s does not hold although it holds a later one of the
// same source and tag. Servers number, send and apply them in order, so that they are
// either still to be found elsewhere or were made away with.
func (s Set) Holes() Set {
	var out []group
	for _, g := range s.groups {
		var gaps []interval
		next := uint64(1)
		for _, iv := range g.intervals {
			if iv.first > next {
				gaps = append(gaps, interval{next, iv.first - 1})
			}
			next = iv.last + 1
		}
		if len(gaps) > 0 {
			out = append(out, group{uuid: g.uuid, tag: g.tag, intervals: gaps})
		}
	}
	return Set{out}
}

// operation says what becomes of a group that only one operand has, and
// computes what becomes of one that both have.
type operation struct {
	keepLeft, keepRight bool
	both                func(left, right []interval) []interval
}

// merge walks the groups of both sets once, in order.
func (s Set) merge(other Set, op operation) Set {
	left, right := s.groups, other.groups
	out := make([]group, 0, max(len(left), len(right)))
	for len(left) > 0 && len(right) > 0 {
		switch c := compareKeys(left[0], right[0]); {
		case c < 0:
			out = appendIf(op.keepLeft, out, left[:1])
			left = left[1:]
		case c > 0:
			out = appendIf(op.keepRight, out, right[:1])
			right = right[1:]
		default:
			g := left[0]
			g.intervals = op.both(left[0].intervals, right[0].intervals)
			out = appendIf(len(g.intervals) > 0, out, []group{g})
			left, right = left[1:], right[1:]
		}
	}
	out = appendIf(op.keepLeft, out, left)
	out = appendIf(op.keepRight, out, right)
	if len(out) == 0 {
		return Set{}
	}
	return Set{out}
}

func appendIf(keep bool, out, groups []group) []group {
	if !keep {
		return out
	}
	return append(out, groups...)
}

// Count returns the number of transactions in s. One source under one tag can
// hold nearly 2^63 of them, so that three could overflow: Count then returns
// the largest uint64.
func (s Set) Count() uint64 {
	var n uint64
	for _, g := range s.groups {
		for _, iv := range g.intervals {
			size := iv.last - iv.first + 1
			if n > math.MaxUint64-size {
				return math.MaxUint64
			}
			n += size
		}
	}
	return n
}

// Sources returns the UUIDs of the servers whose transactions s holds, each
// once whatever its tags, in lower case (as @@server_uuid is) and sorted.
func (s Set) Sources() []string {
	var sources []string
	for i, g := range s.groups {
		if i == 0 || g.uuid != s.groups[i-1].uuid {
			sources = append(sources, string(g.uuid.appendTo(nil)))
		}
	}
	return sources
}

// Of returns the transactions of one source, a UUID as Sources returns it, whatever
// their tags; none for a text that is no UUID.
func (s Set) Of(source string) Set { return s.filter(source, true) }

// Without returns the transactions of all sources but one; all for a text that is no
// UUID.
func (s Set) Without(source string) Set { return s.filter(source, false) }

// filter keeps the groups that are of a source, or those that are not.
func (s Set) filter(source string, of bool) Set {
	id, n, reason := parseUUID(source)
	isUUID := reason == "" && n == len(source)
	var out []group
	for _, g := range s.groups {
		if (isUUID && g.uuid == id) == of {
			out = append(out, g)
		}
	}
	return Set{out}
}
