package archive

import (
	"slices"
	"testing"

	"cnmsql.co/internal/tablecheck"
)

// TestTablesThatMessagesTellApart: the server's messages quote no name, so that two tables may be one
// in them. Rows of neither are left out then.
func TestTablesThatMessagesTellApart(t *testing.T) {
	dotted, beside := tablecheck.Table{Schema: "a.b", Name: "c"}, tablecheck.Table{Schema: "a", Name: "b.c"}
	weird := tablecheck.Table{Schema: "e.d", Name: "we`ird; t"}
	engines := map[tablecheck.Table]string{dotted: "MyISAM", beside: innoDB, weird: "MEMORY",
		{Schema: "a", Name: "b"}: innoDB}
	if got, want := othersOf(engines), []tablecheck.Table{weird}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := inMessages(weird); got != "e.d.we`ird; t" {
		t.Errorf("messages are searched for %s", got)
	}
}
