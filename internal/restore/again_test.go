package restore

import (
	"testing"

	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// A listing that lies, or somebody who deletes the archive while the backup's files are written, has no
// restore end before what it was told that it reaches.
func TestAnArchiveThatIsLessThanBeforeDoesNotShortenARestore(t *testing.T) {
	s, err := store.Open(storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	backUp(t, s, "early", 1, numbers("1-2", ""), at(2))
	for name, target := range map[string]recovery.Target{"to the latest": {}, "to a time": {Time: at(5)}} {
		task := recovery.Task{Cluster: "db", Target: target}
		o, err := FindIn(t.Context(), s, seal.Key{}, failedOver(), task, "8.4.6")
		if err != nil {
			t.Fatal(err)
		}
		want, err := o.Plan(t.Context(), o.Base.EndGTID)
		if err != nil {
			t.Fatal(err)
		}
		plan, passed, err := o.PlanAgain(t.Context(), o.Base.EndGTID)
		if err != nil || !plan.Set.Equal(want.Set) || len(plan.Steps) != len(want.Steps) {
			t.Errorf("%s: it replays to %s, and not to %s: %v", name, plan.Set, want.Set, err)
		}
		if told := passed != nil; told != target.Time.IsZero() {
			t.Errorf("%s: it is told that %v", name, passed)
		}
	}
}
