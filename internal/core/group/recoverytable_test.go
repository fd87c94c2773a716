package group

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cnmsql.co/internal/doctable"
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
	return []string{doctable.Code(row.from...), row.where, row.does, doctable.Code(row.then...)}
}

func (row *exclusionStep) words() []string {
	return []string{doctable.Code(row.from...), row.where, row.does, doctable.Code(row.then)}
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

func TestTheDocumentHasTheTablesOfRecovery(t *testing.T) {
	var means, excluded [][]string
	for _, s := range recoveryMeans {
		means = append(means, []string{doctable.Code(s.state), s.means})
	}
	for _, s := range exclusionMeans {
		excluded = append(excluded, []string{doctable.Code(s.state), s.means})
	}
	rows := []string{"state", "when", "what is done", "then"}
	doctable.Check(t, "../../../docs/group-replication.md",
		doctable.Table{Name: "recovery-states", Head: []string{"state of the group", "means"}, Rows: means},
		doctable.Table{Name: "recovery", Head: rows, Rows: recoveryRows()},
		doctable.Table{Name: "exclusion-states", Head: []string{"state of an instance", "means"}, Rows: excluded},
		doctable.Table{Name: "exclusion", Head: rows, Rows: exclusionRows()})
}
