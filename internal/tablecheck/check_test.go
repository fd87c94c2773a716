package tablecheck

import "testing"

// TestNoTwoTablesHaveOneName: sums of rows are found by it.
func TestNoTwoTablesHaveOneName(t *testing.T) {
	seen := map[string]Table{}
	for _, table := range []Table{{"shop", "orders"}, {"weird", "db.t"}, {"weird.db", "t"}, {"weird", "db`.`t"},
		{"weird`.`db", "t"}, {"`weird`", "t"}, {"", "`a`.`b`"}, {"`a`.`b`", ""}, {"a", "b"}} {
		name := table.String()
		if other, is := seen[name]; is {
			t.Errorf("%q is the name of %q and of %q", name, other, table)
		}
		seen[name] = table
	}
	if _, is := seen["shop.orders"]; !is {
		t.Errorf("a plain name is written with quotes: %v", seen)
	}
}
