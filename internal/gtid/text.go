package gtid

import (
	"fmt"
	"strconv"
)

// String returns the text a server prints for the set, as in @@gtid_executed
// or GTID_SUBTRACT(s, ”): sources sorted and separated by a comma and a
// newline, untagged intervals before the tags, tags in alphabetical order.
func (s Set) String() string { return string(s.appendText(nil, ",\n")) }

func (s Set) appendText(out []byte, separator string) []byte {
	for i, g := range s.groups {
		if i == 0 || g.uuid != s.groups[i-1].uuid {
			if i > 0 {
				out = append(out, separator...)
			}
			out = g.uuid.appendTo(out)
		}
		if g.tag != "" {
			out = append(append(out, ':'), g.tag...)
		}
		for _, iv := range g.intervals {
			out = iv.appendTo(append(out, ':'))
		}
	}
	return out
}

func (iv interval) appendTo(out []byte) []byte {
	out = strconv.AppendUint(out, iv.first, 10)
	if iv.first == iv.last {
		return out
	}
	return strconv.AppendUint(append(out, '-'), iv.last, 10)
}

// Abbreviate returns one line for people: the first maxIntervals intervals and,
// if there are more, the totals. It is for conditions, events and logs, whose
// length the number of gaps in a set must not decide; Parse does not read it.
func (s Set) Abbreviate(maxIntervals int) string {
	head, total := s.head(max(maxIntervals, 0))
	text := string(head.appendText(nil, ", "))
	switch {
	case total == 0:
		return "none"
	case total <= maxIntervals:
		return text
	case text != "":
		text += ", ... "
	}
	return fmt.Sprintf("%s(transactions: %d, intervals: %d)", text, s.Count(), total)
}

// Within is String's text if that has at most limit bytes, and otherwise as many intervals as
// Abbreviate gives within them.
func (s Set) Within(limit int) string {
	text := s.String()
	for intervals := 16; len(text) > limit && intervals > 0; intervals /= 2 {
		text = s.Abbreviate(intervals)
	}
	return text
}

// head returns the first n intervals of s and the number of all.
func (s Set) head(n int) (head Set, total int) {
	for _, g := range s.groups {
		total += len(g.intervals)
		g.intervals = g.intervals[:min(n, len(g.intervals))]
		if n -= len(g.intervals); len(g.intervals) > 0 {
			head.groups = append(head.groups, g)
		}
	}
	return head, total
}

// MarshalText returns String's text; it never fails.
func (s Set) MarshalText() ([]byte, error) { return s.appendText(nil, ",\n"), nil }

// UnmarshalText replaces s by the set that Parse reads from text.
func (s *Set) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}
