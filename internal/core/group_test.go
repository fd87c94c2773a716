package core

import (
	"testing"

	"cnmsql.co/internal/gtid"
)

// Of too many recoveries, the two oldest become one that says less than either.
func TestRecoveriesThatAreForgottenLeaveWhatBothHeld(t *testing.T) {
	const a = "11111111-1111-1111-1111-111111111111"
	var g GroupStatus
	g.NoteRecovery(GroupRecovery{Epoch: 1, Held: gtid.MustParse(a + ":1-9")})
	before := g.Recoveries
	for epoch := int64(2); epoch <= maxRecoveries+1; epoch++ {
		g.NoteRecovery(GroupRecovery{Epoch: epoch, Held: gtid.MustParse(a + ":3-20")})
	}
	if n := len(g.Recoveries); n != maxRecoveries {
		t.Fatalf("%d are remembered", n)
	}
	if r := g.Recoveries[0]; r.Epoch != 2 || !r.Held.Equal(gtid.MustParse(a+":3-9")) {
		t.Errorf("the oldest is %+v", r)
	}
	if !before[0].Held.Equal(gtid.MustParse(a + ":1-9")) {
		t.Errorf("what was known before has changed: %+v", before)
	}
}

// TestOfHowManyAMajorityIsCounted holds that those who are new, or were left out, do not count, whatever was said of
// them since; and that it is never of fewer than were seen.
func TestOfHowManyAMajorityIsCounted(t *testing.T) {
	all := []string{"c-1", "c-2", "c-3", "c-4"}
	for name, c := range map[string]struct {
		g    GroupStatus
		want int
	}{
		"nothing is known":                 {GroupStatus{}, 4},
		"one is new":                       {GroupStatus{New: []string{"c-4"}, ViewMax: 3}, 3},
		"one is new, and four were seen":   {GroupStatus{New: []string{"c-4"}, ViewMax: 4}, 4},
		"one went on without three":        {GroupStatus{LeftOut: leftOut("c-2", "c-3", "c-4"), ViewMax: 1}, 1},
		"one of those was taken back":      {GroupStatus{LeftOut: leftOut("c-3", "c-4"), ViewMax: 2}, 2},
		"one is new, and one was left out": {GroupStatus{New: []string{"c-4"}, LeftOut: leftOut("c-1")}, 2},
	} {
		if got := c.g.Size(all); got != c.want {
			t.Errorf("%s: of %d", name, got)
		}
	}
}

// TestAHostTellsOfItsInstance holds that the name of a host is cut at its first dot, and is no other's prefix.
func TestAHostTellsOfItsInstance(t *testing.T) {
	for host, want := range map[string]string{"": "", "c-1": "c-1", "c-1.shop.svc": "c-1", "c-10.shop.svc": "c-10"} {
		if got := InstanceIn(host); got != want {
			t.Errorf("%q is of %q", host, got)
		}
		if IsHostOf(host, "c-1") != (want == "c-1") {
			t.Errorf("%q: it is of c-1: %t", host, want != "c-1")
		}
	}
}

func leftOut(names ...string) (out []LeftOut) {
	for i, name := range names {
		out = append(out, LeftOut{Instance: name, Admitted: i == 0})
	}
	return out
}

func TestViewsOfOneGroupAreOrderedByTheirNumbers(t *testing.T) {
	for _, c := range []struct {
		a, b string
		is   bool
	}{
		{"17:10", "17:9", true}, {"17:9", "17:10", false}, {"17:9", "17:9", false}, {"18:9", "17:3", false},
		{"", "17:3", false}, {"17:9", "", false}, {"17", "17:3", false}, {"17:x", "17:3", false},
		{"17:9", "17:x", false},
	} {
		if IsLaterView(c.a, c.b) != c.is {
			t.Errorf("%q after %q: %t", c.a, c.b, !c.is)
		}
	}
}
