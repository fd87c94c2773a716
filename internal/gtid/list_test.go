package gtid

import (
	"slices"
	"testing"
)

func TestTransactionsAreListedOneByOne(t *testing.T) {
	const a, b = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
	got, all := MustParse(b + ":7:x:1," + a + ":1-3").List(5)
	if want := []string{a + ":1", a + ":2", a + ":3", b + ":7", b + ":x:1"}; !all || !slices.Equal(got, want) {
		t.Errorf("got %v, %t", got, all)
	}
	if got, all := MustParse(a + ":1-3").List(2); all || got != nil {
		t.Errorf("got %v of too many", got)
	}
	if got, all := (Set{}).List(0); !all || got != nil {
		t.Errorf("the empty set has %v", got)
	}
}

// TestTheHighestNumberOfEachSource reports them, of several intervals and of none.
func TestTheHighestNumberOfEachSource(t *testing.T) {
	const a, b = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
	for text, want := range map[string]string{"": "", a + ":1-3:7-9," + b + ":5": a + ":9," + b + ":5"} {
		var s, last Set
		if text != "" {
			s, last = MustParse(text), MustParse(want)
		}
		if got := s.Last(); !got.Equal(last) {
			t.Errorf("of %q they are %s", text, got)
		}
	}
}
