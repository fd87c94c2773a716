package async

import (
	"slices"
	"testing"

	"cnmsql.co/internal/doctable"
)

// coverage is which rows of failoverTable were taken, by their words.
type coverage map[string]bool

// look keeps the rows that a decision took, and tells of one that did not lead where it says.
func (c coverage) look(t testing.TB, d *decision) {
	t.Helper()
	for _, row := range d.took {
		c[row.where] = true
		if op := d.Status.Operation; row.steps != nil && !slices.Contains(row.steps, op.Step) {
			t.Errorf("the row %v leads to the step %s", row.words(), op.Step)
		}
	}
}

// check: all rows were taken.
func (c coverage) check(t *testing.T) {
	t.Helper()
	for i := range failoverTable {
		if row := &failoverTable[i]; !c[row.where] {
			t.Errorf("no story takes the row %v", row.words())
		}
	}
}

func (row *failoverRow) words() []string {
	return []string{row.where, row.does, doctable.Code(row.steps...)}
}

func TestTheDocumentHasTheTableOfFailover(t *testing.T) {
	var rows [][]string
	for i := range failoverTable {
		rows = append(rows, failoverTable[i].words())
	}
	doctable.Check(t, "../../../docs/failover.md",
		doctable.Table{Name: "failover", Head: []string{"when", "what is done", "step"}, Rows: rows})
}
