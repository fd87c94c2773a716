package mysql

import (
	"testing"

	"cnmsql.co/internal/core"
)

// The decisions know by the same version as the table of features who can be told whom to admit.
func TestCoreKnowsWhoAdmitsAtOnce(t *testing.T) {
	for _, text := range []string{"8.0.22", "8.0.23-14", "8.0.24", "8.0.45", "8.4.6", "9.7.0"} {
		v, err := parseNumbers(text)
		if err != nil {
			t.Fatal(err)
		}
		if v.has(allowlistOfRunningMember) != core.AdmitsAtOnce(text) {
			t.Errorf("%s: %t", text, core.AdmitsAtOnce(text))
		}
	}
}
