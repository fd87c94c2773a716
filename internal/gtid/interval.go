package gtid

import (
	"cmp"
	"slices"
)

// maxSequence is the largest sequence number a server accepts. It leaves room
// below 2^63-1 for every "last+1" here.
const maxSequence = 9223372036854775806

// interval is a run of sequence numbers, both ends included. The functions
// below take and return lists that are sorted, disjoint and not adjacent, walk
// each list once and never write to their arguments.
type interval struct {
	first, last uint64
}

// normalise sorts intervals and joins those that overlap or touch, in place.
func normalise(intervals []interval) []interval {
	byFirst := func(a, b interval) int { return cmp.Compare(a.first, b.first) }
	// Servers print them in order; looking first keeps such text linear.
	if !slices.IsSortedFunc(intervals, byFirst) {
		slices.SortFunc(intervals, byFirst)
	}
	out := intervals[:0]
	for _, iv := range intervals {
		out = appendJoined(out, iv)
	}
	return slices.Clip(out)
}

// appendJoined appends iv, which must not begin before the last of out does.
func appendJoined(out []interval, iv interval) []interval {
	if n := len(out); n > 0 && iv.first <= out[n-1].last+1 {
		out[n-1].last = max(out[n-1].last, iv.last)
		return out
	}
	return append(out, iv)
}

func containsIntervals(super, sub []interval) bool {
	i := 0
	for _, iv := range sub {
		for i < len(super) && super[i].last < iv.first {
			i++
		}
		if i == len(super) || iv.first < super[i].first || iv.last > super[i].last {
			return false
		}
	}
	return true
}

func uniteIntervals(a, b []interval) []interval {
	out := make([]interval, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].first <= b[0].first {
			out, a = appendJoined(out, a[0]), a[1:]
		} else {
			out, b = appendJoined(out, b[0]), b[1:]
		}
	}
	for _, iv := range a {
		out = appendJoined(out, iv)
	}
	for _, iv := range b {
		out = appendJoined(out, iv)
	}
	return out
}

func subtractIntervals(a, b []interval) []interval {
	var out []interval
	for _, iv := range a {
		for len(b) > 0 && b[0].last < iv.first {
			b = b[1:]
		}
		// b[0] may reach into the next interval of a as well, so look ahead
		// without consuming.
		for _, hole := range b {
			if hole.first > iv.last {
				break
			}
			if hole.first > iv.first {
				out = append(out, interval{iv.first, hole.first - 1})
			}
			iv.first = hole.last + 1
		}
		if iv.first <= iv.last {
			out = append(out, iv)
		}
	}
	return out
}

func intersectIntervals(a, b []interval) []interval {
	var out []interval
	for len(a) > 0 && len(b) > 0 {
		iv := interval{max(a[0].first, b[0].first), min(a[0].last, b[0].last)}
		if iv.first <= iv.last {
			out = append(out, iv)
		}
		if a[0].last < b[0].last {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}
