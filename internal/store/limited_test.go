package store_test

import (
	"testing"
	"time"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// another is a store that cannot write slowly itself.
type another struct{ store.Store }

func TestLimitedMovesNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	const perSecond = 400 << 10 // of which a quarter goes at once
	inner := open(t, storetest.Dir(t))
	for name, s := range map[string]store.Store{"Directory": inner, "Another": another{inner}} {
		for direction, move := range map[string]func(store.Store){
			"Put":    func(s store.Store) { must(t, s.Put(t.Context(), "key", make([]byte, 150<<10))) },
			"Create": func(s store.Store) { must(t, s.Create(t.Context(), name, make([]byte, 150<<10))) },
			"Get":    func(s store.Store) { same(t, len(get(t, s, "key")), 150<<10) },
		} {
			must(t, inner.Put(t.Context(), "key", make([]byte, 150<<10)))
			begun := time.Now()
			move(store.Limited(s, perSecond))
			if took := time.Since(begun); took < 110*time.Millisecond || took > 5*time.Second {
				t.Errorf("%s, %s: %s", name, direction, took)
			}
		}
	}
	if store.Limited(inner, 0) != inner {
		t.Error("0 is a limit")
	}
}
