package async

import (
	"slices"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// pass decides, has that carried out, and lets time pass; it reports whether somebody takes writes.
func (w *world) pass(t *testing.T, tick time.Duration) (plan core.Plan, isWritable bool) {
	t.Helper()
	_, plan = w.decide(t)
	for _, e := range plan.Effects {
		w.carryOut(e)
	}
	w.manage()
	for _, in := range w.insts {
		isWritable = isWritable || in.truth.WritableEpoch != 0
	}
	w.advance(tick)
	return plan, isWritable
}

// The primary has to go, and none of the others gets to take writes in time: each switchover stops
// writes for nothing. What does not help is tried ever more seldom, whoever it was tried with.
func TestAPrimaryThatHasToGoIsNotClosedAgainAndAgain(t *testing.T) {
	const tick, within = 100 * time.Millisecond, 30 * time.Minute
	for name, slow := range map[string][]string{"both": {"c-2", "c-3"}, "one of two": {"c-2"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(core.Cluster{Wanted: 3, Durability: core.Durability{Mode: core.DurabilityAsync},
				SwitchoverLimit: time.Hour, SwitchoverPause: 5 * time.Second})
			w.coverage = coverage{}
			w.settleDown(t)
			w.cluster.Wanted = len(slow) + 1
			for range 40 { // the third may go first
				w.pass(t, time.Second)
			}
			for _, of := range slow {
				w.slow[of] = true
			}
			w.add("c-1").pod.DemoteRequested = true
			begun, closed := 0, time.Duration(0)
			for range int(within / tick) {
				plan, isWritable := w.pass(t, tick)
				isBegin := func(e core.Event) bool { return e.Reason == core.ReasonDemoteRequested }
				if slices.ContainsFunc(plan.Events, isBegin) {
					begun++
				}
				if !isWritable {
					closed += tick
				}
			}
			if begun < 2 || begun > 6 || closed > 40*time.Second {
				t.Errorf("in %s, %d switchovers were begun, and writes stopped for %s", within, begun, closed)
			}
		})
	}
}
