package gtid

import (
	"fmt"
	"slices"
	"strings"
)

// maxTag is the longest tag a server accepts.
const maxTag = 32

// SyntaxError tells why a text is no GTID set.
type SyntaxError struct {
	Text   string // what was parsed
	Offset int    // where it went wrong, in bytes from the beginning
	Reason string
}

// Error quotes only what stands at the fault: sets can be megabytes long.
func (e *SyntaxError) Error() string {
	const quoted = 40
	rest := e.Text[e.Offset:]
	switch {
	case rest == "":
		return fmt.Sprintf("malformed GTID set: %s, at its end (byte %d)", e.Reason, e.Offset)
	case len(rest) > quoted:
		rest = rest[:quoted] + "..."
	}
	return fmt.Sprintf("malformed GTID set: %s, at byte %d: %q", e.Reason, e.Offset, rest)
}

// MustParse is Parse for sets known to be well-formed; it panics if not.
func MustParse(text string) Set {
	s, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// Parse reads a GTID set in any form a server accepts: any letter case, spaces
// and newlines around every token, intervals in any order, overlapping or
// empty (5-3), sources without intervals, superfluous commas, UUIDs without
// dashes or in braces. The error is a *SyntaxError.
func Parse(text string) (Set, error) {
	// Every interval stands behind a colon: the parser never outgrows this,
	// which would leave finished groups with a stale copy.
	p := parser{text: text, intervals: make([]interval, 0, strings.Count(text, ":"))}
	if err := p.set(); err != nil {
		return Set{}, err
	}
	return p.finish(), nil
}

// parser collects groups as they come; the intervals of all of them lie one
// behind the other in one slice.
type parser struct {
	text      string
	pos       int
	groups    []group
	intervals []interval
}

// set reads: [source] ("," [source])*
func (p *parser) set() error {
	for {
		if p.accept(',') {
			continue
		}
		if p.pos == len(p.text) {
			return nil
		}
		if err := p.source(); err != nil {
			return err
		}
		if p.pos < len(p.text) && p.text[p.pos] != ',' {
			return p.fail(p.pos, `expected ":", "," or the end`)
		}
	}
}

// source reads: uuid (":" (tag | interval))*. A tag rules the intervals up to
// the next one; without any it names nothing, which servers accept.
func (p *parser) source() error {
	id, err := p.uuid()
	if err != nil {
		return err
	}
	p.open(id, "")
	for p.accept(':') {
		if p.pos < len(p.text) && isTagStart(p.text[p.pos]) {
			err = p.tag(id)
		} else {
			err = p.interval()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) uuid() (uuid, error) {
	id, n, reason := parseUUID(p.text[p.pos:])
	p.pos += n
	if reason != "" {
		return id, p.fail(p.pos, reason)
	}
	return id, nil
}

func (p *parser) tag(id uuid) error {
	start := p.pos
	for p.pos < len(p.text) && (isTagStart(p.text[p.pos]) || isDigit(p.text[p.pos])) {
		p.pos++
	}
	if p.pos-start > maxTag {
		return p.fail(start, "a tag has at most 32 characters")
	}
	// Cloned, lest a few letters keep the whole text in memory.
	p.open(id, strings.Clone(strings.ToLower(p.text[start:p.pos])))
	return nil
}

// interval reads: first ["-" last].
func (p *parser) interval() error {
	first, err := p.sequence(1, "expected a sequence number or a tag")
	if err != nil {
		return err
	}
	last := first
	if p.accept('-') {
		// Servers take 0 for an end: one more way to write an empty interval.
		if last, err = p.sequence(0, "expected the last sequence number of the interval"); err != nil {
			return err
		}
	}
	if first <= last {
		p.add(interval{first, last})
	}
	return nil
}

// sequence reads a decimal number of at least lowest; what says what is missing
// if there is none.
func (p *parser) sequence(lowest uint64, what string) (uint64, error) {
	start := p.pos
	var n uint64
	for ; p.pos < len(p.text) && isDigit(p.text[p.pos]); p.pos++ {
		// Stays above the maximum once it is there, and cannot wrap around.
		if n <= maxSequence {
			n = min(n, maxSequence/10+1)*10 + uint64(p.text[p.pos]-'0')
		}
	}
	switch {
	case p.pos == start:
		return 0, p.fail(start, what)
	case n < lowest:
		return 0, p.fail(start, "sequence numbers begin at 1")
	case n > maxSequence:
		return 0, p.fail(start, "the largest sequence number is 9223372036854775806")
	}
	return n, nil
}

// open begins a group; add gives the current one an interval.
func (p *parser) open(id uuid, tag string) {
	p.groups = append(p.groups, group{uuid: id, tag: tag, intervals: p.intervals[len(p.intervals):]})
}

func (p *parser) add(iv interval) {
	p.intervals = append(p.intervals, iv)
	g := &p.groups[len(p.groups)-1]
	g.intervals = g.intervals[:len(g.intervals)+1]
}

// finish brings the groups into the order and uniqueness that Set promises.
func (p *parser) finish() Set {
	slices.SortStableFunc(p.groups, compareKeys)
	var out []group
	for _, g := range p.groups {
		g.intervals = slices.Clip(g.intervals) // the next group's lie behind
		n := len(out)
		switch {
		case len(g.intervals) == 0:
		case n > 0 && compareKeys(out[n-1], g) == 0:
			out[n-1].intervals = append(out[n-1].intervals, g.intervals...)
		default:
			out = append(out, g)
		}
	}
	for i := range out {
		out[i].intervals = normalise(out[i].intervals)
	}
	return Set{out}
}

// accept skips spaces and then, if c comes next, c and the spaces behind it.
func (p *parser) accept(c byte) bool {
	p.skipSpace()
	if p.pos == len(p.text) || p.text[p.pos] != c {
		return false
	}
	p.pos++
	p.skipSpace()
	return true
}

func (p *parser) skipSpace() {
	for p.pos < len(p.text) && isSpace(p.text[p.pos]) {
		p.pos++
	}
}

func (p *parser) fail(offset int, reason string) error {
	return &SyntaxError{Text: p.text, Offset: offset, Reason: reason}
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isTagStart(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}
