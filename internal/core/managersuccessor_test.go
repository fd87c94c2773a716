package core_test

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// TestSuccessorTellsHowOftenItWasRefused holds that the count begins again where one that is busy becomes one
// that fails, or the reverse, and that it tells since when.
func TestSuccessorTellsHowOftenItWasRefused(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	var s core.Successor
	for i, c := range []struct {
		busy          bool
		failed, since int
	}{{false, 1, 0}, {false, 2, 0}, {true, 1, 2}, {true, 2, 2}, {false, 1, 4}} {
		s.Refused("because", c.busy, at(i))
		want := core.Successor{Failed: c.failed, Since: at(c.since), Why: "because", Busy: c.busy}
		if s != want {
			t.Errorf("refusal %d: %+v, not %+v", i, s, want)
		}
	}
}
