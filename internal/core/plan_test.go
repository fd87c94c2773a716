package core_test

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// TestLookInIsTheSoonestOfAllThatIsWaitedFor holds that nobody looks often at a cluster at rest, soon again after
// what failed, and when the plan asks for it.
func TestLookInIsTheSoonestOfAllThatIsWaitedFor(t *testing.T) {
	rest := core.Plan{Status: core.Status{Phase: core.PhaseHealthy}}
	busy, soon, late := rest, rest, rest
	busy.Effects = []core.Effect{core.ClearOverride{}}
	soon.Recheck, late.Recheck = 10*time.Millisecond, time.Hour
	for name, c := range map[string]struct {
		plan   core.Plan
		failed bool
		want   time.Duration
	}{
		"at rest":              {rest, false, core.LookAtRest},
		"at rest, and failed":  {rest, true, core.TryAgain},
		"not at rest":          {busy, false, core.LookAgain},
		"asked for soon":       {soon, false, soon.Recheck},
		"asked for, and fails": {soon, true, soon.Recheck},
		"asked for late":       {late, false, core.LookAtRest},
	} {
		if got := c.plan.LookIn(c.failed); got != c.want {
			t.Errorf("%s: looks again in %s, not %s", name, got, c.want)
		}
	}
}

// TestGoesOnReportsWhetherToLookAtOnce holds that no order is repeated at once that was refused.
func TestGoesOnReportsWhetherToLookAtOnce(t *testing.T) {
	again := core.Plan{Again: true}
	if !again.GoesOn(false) || again.GoesOn(true) || (core.Plan{}).GoesOn(false) {
		t.Error("a plan goes on though it does not ask for it, or was refused; or it does not")
	}
}
