package core_test

import (
	"slices"
	"testing"

	"cnmsql.co/internal/core"
)

// TestNotMadeHoldsWhatIsSurelyNotThere holds that a name which is asked for again may be made, that nobody takes
// the name that was asked for last for unasked, and that only the last names are kept.
func TestNotMadeHoldsWhatIsSurelyNotThere(t *testing.T) {
	var m core.NotMade
	expect := func(when string, want ...string) {
		t.Helper()
		if got := m.Names(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, not %v", when, got, want)
		}
	}
	m.Ask("awaited-1")
	m.Unasked("awaited-1")
	expect("it is under way")
	m.Refused("awaited-1")
	m.Refused("awaited-1")
	m.Refused("")
	expect("it was refused", "awaited-1")
	m.Unasked("awaited-2")
	expect("another is not asked for", "awaited-1", "awaited-2")
	held := m.Names()
	m.Ask("awaited-1")
	expect("it is asked for again", "awaited-2")
	if !slices.Equal(held, []string{"awaited-1", "awaited-2"}) {
		t.Errorf("whoever has the names sees them change: %v", held)
	}
	for i := range 2 * core.NotMadeKept {
		m.Refused(core.AwaitedPod(10 + i))
	}
	if got := m.Names(); len(got) != core.NotMadeKept || got[0] != core.AwaitedPod(10+core.NotMadeKept) {
		t.Errorf("it keeps %v", got)
	}
}
