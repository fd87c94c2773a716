package restore

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

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

// silent is a store that does not answer for a while.
type silent struct {
	store.Store
	until time.Time
}

func (s silent) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	if time.Now().Before(s.until) {
		return func(yield func(store.Object, error) bool) { yield(store.Object{}, store.Unreachable) }
	}
	return s.Store.List(ctx, prefix)
}

// That the store does not answer when the backup's files are written has no restore to the latest end before what was
// archived meanwhile: it is asked again for two minutes and a half, and then the restore has failed.
func TestAStoreThatDoesNotAnswerDoesNotShortenARestore(t *testing.T) {
	s, err := store.Open(storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	backUp(t, s, "early", 1, numbers("1-2", ""), at(2))
	for away, fails := range map[time.Duration]bool{time.Minute: false, time.Hour: true} {
		synctest.Test(t, func(t *testing.T) {
			o, err := FindIn(t.Context(), s, seal.Key{}, failedOver(), recovery.Task{Cluster: "db"}, "8.4.6")
			if err != nil {
				t.Fatal(err)
			}
			o.Place.Store = silent{s, time.Now().Add(away)}
			_, passed, err := o.PlanAgain(t.Context(), o.Base.EndGTID)
			if failed := errors.Is(err, store.Unreachable); failed != fails || !fails && passed == nil {
				t.Errorf("away for %s: %v, and passed over is %v", away, err, passed)
			}
		})
	}
}
