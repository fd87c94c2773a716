package byhand

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
)

// TestWhatIsFoundIsShownBeforeAllIsRead, so that a search of all statements needs no memory for each.
func TestWhatIsFoundIsShownBeforeAllIsRead(t *testing.T) {
	var out bytes.Buffer
	lines := func() int { return strings.Count(out.String(), "\n") }
	must(t, Search{Out: &out}.list("", func(visit func(binlog.Statement) error) error {
		for n := range 10 * aligned {
			must(t, visit(binlog.Statement{Schema: "shop", Text: "INSERT INTO orders VALUES (1)"}))
			if held := n + 1 - lines(); held > aligned {
				t.Fatalf("%d lines are held", held)
			}
		}
		return nil
	}))
	if n := lines(); n != 10*aligned+1 {
		t.Errorf("of %d statements %d lines are shown", 10*aligned, n)
	}
}

// TestASearchTellsWhereTheArchiveEnds whether or not something was found: who looks for what was committed just
// now would take "no statement matches" for an answer.
func TestASearchTellsWhereTheArchiveEnds(t *testing.T) {
	noon := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	until := reaches(facts.Archive{Parts: []facts.Part{{Last: noon}, {Last: noon.Add(-time.Hour)}}})
	for _, c := range []struct {
		reaches string
		found   int
		want    string
	}{
		{until, 0, "no statement matches\n(what is archived ends at 2026-11-28T12:00:00Z)\n"},
		{until, 1, "(what is archived ends at 2026-11-28T12:00:00Z)\n"},
		{reaches(facts.Archive{}), 0, "no statement matches\n(nothing is archived yet)\n"},
		{"", 0, "no statement matches\n"},
	} {
		var out bytes.Buffer
		must(t, Search{Out: &out}.list(c.reaches, func(visit func(binlog.Statement) error) error {
			for range c.found {
				must(t, visit(binlog.Statement{Text: "DROP TABLE t", Committed: noon}))
			}
			return nil
		}))
		if got := out.String(); c.found == 0 && got != c.want || !strings.HasSuffix(got, c.want) {
			t.Errorf("of %d found it says\n%swant\n%s", c.found, got, c.want)
		}
	}
}
