package byhand

import (
	"bytes"
	"strings"
	"testing"

	"cnmsql.co/internal/binlog"
)

// TestWhatIsFoundIsShownBeforeAllIsRead, so that a search of all statements needs no memory for each.
func TestWhatIsFoundIsShownBeforeAllIsRead(t *testing.T) {
	var out bytes.Buffer
	lines := func() int { return strings.Count(out.String(), "\n") }
	must(t, Search{Out: &out}.list(func(visit func(binlog.Statement) error) error {
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
