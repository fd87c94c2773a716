package archive

import (
	"testing"
	"time"

	"cnmsql.co/internal/gtid"
)

// TestWhatAPartVouchesFor reports which transactions may be those that were archived, and that a part says nothing
// of numbers that its server did not give, or that are not gone on from.
func TestWhatAPartVouchesFor(t *testing.T) {
	a := set("a1").Sources()[0]
	w := Writer{Cluster: "uid", ServerUUID: a}
	p := part(7, 3, "a1-7 b1-9", "a8-10 b10", 20, 30)
	p.Cluster, p.ServerUUID = "uid", a
	changed := func(change func(p *Part)) Part {
		other := p
		change(&other)
		return other
	}
	for name, c := range map[string]struct {
		part          Part
		claimed, want gtid.Set
		earlier       bool // than the part may it be
	}{
		"all of it":     {p, set("a1-10 b1-10"), set("a8-10"), false},
		"some of it":    {p, set("a1-9 b1-10"), set("a9"), true},
		"none of it":    {p, set("a1-5 b1-10"), set("a5"), true},
		"nothing":       {p, set("b1-10"), set(""), true},
		"others' alone": {changed(func(p *Part) { p.GTIDs = set("b10") }), set("a1-7 b1-10"), set(""), false},
		"another server's": {changed(func(p *Part) { p.ServerUUID = set("b1").Sources()[0] }), set("a1-10 b1-10"),
			set(""), false},
		"another cluster's": {changed(func(p *Part) { p.Cluster = "other" }), set("a1-10"), set(""), false},
		"without times":     {changed(func(p *Part) { p.Last = time.Time{} }), set("a1-10"), set(""), false},
	} {
		got := w.Vouched(c.part, c.claimed)
		if !got.GTIDs.Equal(c.want) {
			t.Errorf("%s: it vouches for %s", name, got.GTIDs)
		}
		if got.GTIDs.IsEmpty() {
			continue
		}
		for _, is := range []struct {
			committed, origin float64
			want              bool
		}{{20, 20, true}, {30, 30, true}, {31, 31, false}, {19, 19, c.earlier}, {40, 25, true}, {25, 10, true}} {
			if got.MayBe(at(is.committed), at(is.origin)) != is.want {
				t.Errorf("%s: what was committed at %v, and at %v at its origin, is taken for the other", name,
					is.committed, is.origin)
			}
		}
	}
}
