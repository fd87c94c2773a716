package core_test

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// TestHeardKeepsTheLastReportsUntilTheManagerIsLost holds that these are the newest, and no more than
// are needed. What was said last and what was executed outlive that, and an observation has all of it.
func TestHeardKeepsTheLastReportsUntilTheManagerIsLost(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	set := gtid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5")
	var h core.Heard
	for n := range 6 {
		r := core.Report{SeenEpoch: int64(n)}
		if n < 5 {
			r.Server = &core.Server{Executed: set}
		}
		h.Take(r, at(n), at(n+1))
		if got, want := len(h.Earlier()), min(n, core.EarlierKept); got != want {
			t.Errorf("after report %d, %d earlier ones are kept, not %d", n, got, want)
		}
	}
	for i, f := range h.Earlier() {
		if r, _ := f.Get(); r.SeenEpoch != int64(4-i) {
			t.Errorf("earlier report %d is number %d", i, r.SeenEpoch)
		}
	}
	if e := h.Executed; !e.Known() || !e.NotBefore().Equal(at(4)) || !e.Received().Equal(at(5)) {
		t.Errorf("what was executed was read %s, and came %s", e.NotBefore(), e.Received())
	}
	var in core.Instance
	h.Put(&in)
	again := in.Heard()
	if again.Take(core.Report{SeenEpoch: 6}, at(6), at(7)); len(in.Earlier) != 3 || len(again.Earlier()) != 3 {
		t.Errorf("an observation has %d earlier reports, and goes on with %d", len(in.Earlier), len(again.Earlier()))
	}
	h.Lose()
	r, known := h.Latest.Get()
	if h.Report.Known() || len(h.Earlier()) != 0 || !known || r.SeenEpoch != 5 || !h.Executed.Known() {
		t.Errorf("of a manager that is lost, it has %+v", h)
	}
	if !in.Report.Known() {
		t.Error("an observation changes with what is heard later")
	}
}
