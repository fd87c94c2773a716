package gtid

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// model is a set of GTIDs as one would write it without caring for speed.
type model map[gtid]bool

type gtid struct {
	source, tag string
	number      uint64
}

// universe is small, so that intervals meet, touch and split often.
var (
	universeSources = []string{a, b, "ffffffff-ffff-ffff-ffff-ffffffffffff"}
	universeTags    = []string{"", "t", "tag"}
)

const universeNumbers = 10

func (m model) set() Set {
	var text []string
	for g := range m {
		source := g.source
		if g.tag != "" {
			source += ":" + g.tag
		}
		text = append(text, fmt.Sprintf("%s:%d", source, g.number))
	}
	return MustParse(strings.Join(text, ","))
}

func (m model) filter(keep func(gtid) bool) model {
	out := model{}
	for g := range m {
		if keep(g) {
			out[g] = true
		}
	}
	return out
}

func (m model) union(other model) model {
	out := m.filter(func(gtid) bool { return true })
	for g := range other {
		out[g] = true
	}
	return out
}

func drawModel(t *rapid.T, label string) model {
	m := model{}
	for _, source := range universeSources {
		for _, tag := range universeTags {
			bits := rapid.Uint16Range(0, 1<<universeNumbers-1).Draw(t, label)
			// Half of the groups stay out, so that keys differ as well.
			for n := range universeNumbers * int(bits&1) {
				if bits>>n&1 == 1 {
					m[gtid{source, tag, uint64(n + 1)}] = true
				}
			}
		}
	}
	return m
}

// checkForm asserts what Set promises of its groups; every other method
// relies on it.
func checkForm(t interface{ Fatalf(string, ...any) }, s Set) {
	if s.IsEmpty() && !reflect.ValueOf(s).IsZero() {
		t.Fatalf("an empty set is not the zero value: %#v", s)
	}
	for i, g := range s.groups {
		if i > 0 && compareKeys(s.groups[i-1], g) >= 0 {
			t.Fatalf("groups out of order: %#v", s)
		}
		if len(g.intervals) == 0 {
			t.Fatalf("a group without intervals: %#v", s)
		}
		for j, iv := range g.intervals {
			if iv.first < 1 || iv.first > iv.last || iv.last > maxSequence ||
				j > 0 && iv.first <= g.intervals[j-1].last+1 {
				t.Fatalf("intervals out of form: %#v", s)
			}
		}
	}
}

func TestAlgebraAgreesWithTheNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, n := drawModel(t, "left"), drawModel(t, "right")
		s, o := m.set(), n.set()
		sText, oText := s.String(), o.String()
		for name, pair := range map[string]struct {
			got  Set
			want model
		}{
			"union":     {s.Union(o), m.union(n)},
			"subtract":  {s.Subtract(o), m.filter(func(g gtid) bool { return !n[g] })},
			"intersect": {s.Intersect(o), m.filter(func(g gtid) bool { return n[g] })},
		} {
			checkForm(t, pair.got)
			if !pair.got.Equal(pair.want.set()) || pair.got.Count() != uint64(len(pair.want)) {
				t.Fatalf("%s of %q and %q is %q, want %q", name, s, o, pair.got, pair.want.set())
			}
		}
		if got, want := s.Contains(o), len(n.filter(func(g gtid) bool { return !m[g] })) == 0; got != want {
			t.Fatalf("%q contains %q: %v, want %v", s, o, got, want)
		}
		if s.String() != sText || o.String() != oText {
			t.Fatalf("an operand was changed: %q to %q, %q to %q", sText, s, oText, o)
		}
	})
}

func TestAlgebraicLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y, z := drawModel(t, "x").set(), drawModel(t, "y").set(), drawModel(t, "z").set()
		both := x.Intersect(y)
		for law, holds := range map[string]bool{
			"union commutes":             x.Union(y).Equal(y.Union(x)),
			"intersection commutes":      both.Equal(y.Intersect(x)),
			"union associates":           x.Union(y).Union(z).Equal(x.Union(y.Union(z))),
			"intersection associates":    both.Intersect(z).Equal(x.Intersect(y.Intersect(z))),
			"intersection distributes":   x.Intersect(y.Union(z)).Equal(both.Union(x.Intersect(z))),
			"De Morgan":                  x.Subtract(y.Union(z)).Equal(x.Subtract(y).Intersect(x.Subtract(z))),
			"difference and common part": x.Subtract(y).Union(both).Equal(x),
			"difference is disjoint":     x.Subtract(y).Intersect(y).IsEmpty(),
			"own difference is empty":    x.Subtract(x).IsEmpty(),
			"empty set is neutral":       x.Union(Set{}).Equal(x) && x.Subtract(Set{}).Equal(x),
			"contains its parts":         x.Contains(both) && x.Union(y).Contains(x) && x.Contains(Set{}),
			"contains as difference":     x.Contains(y) == y.Subtract(x).IsEmpty(),
			"equal as mutual contains":   x.Equal(y) == (x.Contains(y) && y.Contains(x)),
			"count adds up":              x.Union(y).Count() == x.Count()+y.Count()-both.Count(),
			"text is read back":          MustParse(x.String()).Equal(x),
		} {
			if !holds {
				t.Fatalf("%s: does not hold for x=%q y=%q z=%q", law, x, y, z)
			}
		}
	})
}

func TestSourcesAreListedOnce(t *testing.T) {
	s := MustParse(b + ":t:1," + strings.ToUpper(a) + ":1:t:1:u:2")
	if got, want := s.Sources(), []string{a, b}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (Set{}).Sources(); len(got) != 0 {
		t.Errorf("the empty set has sources %v", got)
	}
}

func TestCountStopsAtTheLargestNumber(t *testing.T) {
	all := a + ":1-9223372036854775806"
	if got := MustParse(all).Count(); got != maxSequence {
		t.Errorf("got %d", got)
	}
	if got := MustParse(all + ":t:1-9223372036854775806:u:1-9223372036854775806").Count(); got != math.MaxUint64 {
		t.Errorf("got %d, want the largest uint64", got)
	}
}

func TestGroupsOfOneTextDoNotShareRoomToGrow(t *testing.T) {
	// The intervals of b lie behind those of a in the parser's memory.
	s := MustParse(a + ":1," + b + ":1," + a + ":5")
	if got, want := s.String(), a+":1:5,\n"+b+":1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTransactionsOfOneSource(t *testing.T) {
	s := MustParse(a + ":1-3:tag:5," + b + ":7")
	for _, c := range []struct{ source, of, without string }{
		{a, a + ":1-3:tag:5", b + ":7"},
		{b, b + ":7", a + ":1-3:tag:5"},
		{"cccccccc-cccc-cccc-cccc-cccccccccccc", "", s.String()},
		{"", "", s.String()},
		{a + ":1", "", s.String()},
	} {
		if of, without := s.Of(c.source), s.Without(c.source); !of.Equal(MustParse(c.of)) ||
			!without.Equal(MustParse(c.without)) {
			t.Errorf("%q: of it %q, of others %q", c.source, of, without)
		}
	}
	if none := (Set{}); !none.Of(a).IsEmpty() || !none.Without(a).IsEmpty() {
		t.Error("the empty set has transactions")
	}
}

func TestHoles(t *testing.T) {
	const a, b = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:", "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb:"
	for text, want := range map[string]string{
		"":                             "",
		a + "1-9":                      "",
		a + "3":                        a + "1-2",
		a + "1-2:5-6:9," + b + "1-7":   a + "3-4:7-8",
		a + "1-3:tag:4-5," + b + "2-3": a + "tag:1-3," + b + "1",
	} {
		got := MustParse(text).Holes()
		if !got.Equal(MustParse(want)) {
			t.Errorf("the holes of %q are %q, want %q", text, got, want)
		}
		if s := MustParse(text); !s.Intersect(got).IsEmpty() || !s.Union(got).Holes().IsEmpty() {
			t.Errorf("the holes of %q are none: %q", text, got)
		}
	}
}
