package group

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// coverage is which rows of the tables of recovery were taken, by their words.
type coverage struct {
	rows  map[string]bool
	wrong []string
}

// look keeps the rows that a decision took, and those that did not lead where they say.
func (c *coverage) look(d *decision) {
	for _, row := range d.took {
		c.rows[strings.Join(row.words(), " ")] = true
		d.seen = see(d.Observation, d.g)
		is, expected := d.recoveryState(), slices.Concat(row.then)
		if len(expected) == 0 {
			expected = row.from
		}
		if !row.proceeds && !slices.Contains(expected, is) {
			c.wrong = append(c.wrong, fmt.Sprintf("%v leads to %s", row.words(), is))
		}
	}
	for _, row := range d.tookBack {
		c.rows[strings.Join(row.words(), " ")] = true
	}
}

// check: all rows were taken, by stories or by one of those that return.
func (c *coverage) check(t *testing.T) {
	t.Helper()
	for _, one := range returns() {
		o := one.observe()
		c.look(decide(&o))
	}
	for _, why := range c.wrong {
		t.Error(why)
	}
	for _, row := range append(recoveryRows(), exclusionRows()...) {
		if words := strings.Join(row, " "); !c.rows[words] {
			t.Errorf("no story takes the row: %s", words)
		}
	}
}

func (row *transition) words() []string {
	return []string{states(row.from), row.where, row.does, states(row.then)}
}

func (row *exclusionStep) words() []string {
	return []string{states(row.from), row.where, row.does, states([]exclusionState{row.then})}
}

func states[T ~string](all []T) string {
	var out []string
	for _, s := range all {
		if s != "" {
			out = append(out, "`"+string(s)+"`")
		}
	}
	return strings.Join(out, ", ")
}

func recoveryRows() (out [][]string) {
	for i := range recoveryTable {
		out = append(out, recoveryTable[i].words())
	}
	return out
}

func exclusionRows() (out [][]string) {
	for i := range exclusionTable {
		out = append(out, exclusionTable[i].words())
	}
	return out
}

// TestTheDocumentHasTheTablesOfRecovery: docs/group-replication.md shows them as they are. With
// -rewrite they are written there.
func TestTheDocumentHasTheTablesOfRecovery(t *testing.T) {
	const file = "../../../docs/group-replication.md"
	var means, excluded [][]string
	for _, s := range recoveryMeans {
		means = append(means, []string{"`" + string(s.state) + "`", s.means})
	}
	for _, s := range exclusionMeans {
		excluded = append(excluded, []string{"`" + string(s.state) + "`", s.means})
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	after := string(before)
	for name, text := range map[string]string{
		"recovery-states":  table([]string{"state of the group", "means"}, means),
		"recovery":         table([]string{"state", "when", "what is done", "then"}, recoveryRows()),
		"exclusion-states": table([]string{"state of an instance", "means"}, excluded),
		"exclusion":        table([]string{"state", "when", "what is done", "then"}, exclusionRows()),
	} {
		begin, end := "<!-- "+name+": made by go test ./internal/core/group -rewrite -->\n", "<!-- /"+name+" -->"
		head, rest, found := strings.Cut(after, begin)
		_, tail, ends := strings.Cut(rest, end)
		if !found || !ends {
			t.Fatalf("%s has no room for the table %q: it must stand between %q and %q", file, name, begin, end)
		}
		after = head + begin + "\n" + text + "\n" + end + tail
	}
	switch {
	case after == string(before):
	case flag.Lookup("rewrite").Value.String() == "true":
		if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not show the tables of recovery.go as they are: go test ./internal/core/group -run %s -rewrite", file, t.Name())
	}
}

func table(head []string, rows [][]string) string {
	line := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	out := line(head) + strings.Repeat("|---", len(head)) + "|\n"
	for _, row := range rows {
		out += line(row)
	}
	return out
}
