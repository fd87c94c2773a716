package archive

import (
	"slices"
	"testing"
)

func TestTablesThatLackRowsAreNamedOnce(t *testing.T) {
	l := Lacking{Empty: []string{"d.a", "d.c"}, LeftOut: []string{"d.a", "d.b"}, Converted: []string{"d.b"}}
	if got := l.Tables(20); !slices.Equal(got, []string{"d.a", "d.b", "d.c"}) {
		t.Errorf("got %q", got)
	}
	if got := l.Tables(1); !slices.Equal(got, []string{"d.a", "and 2 more"}) {
		t.Errorf("of many: %q", got)
	}
	if got := l.Told(1); len(got) != 3 || got[0][:len("d.a and 1 more: not InnoDB")] != "d.a and 1 more: not InnoDB" {
		t.Errorf("it says %q", got)
	}
	if got := (Lacking{}).Tables(20); len(got) > 0 {
		t.Errorf("of none: %q", got)
	}
}
