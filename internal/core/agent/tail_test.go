package agent

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

func TestWhoIsPromotedComesAsLongAsItsManagerMayBringItUp(t *testing.T) {
	fine := core.Report{Instance: "db-2", State: core.Running, Data: core.DataPopulated}
	with := func(edit func(*core.Report)) core.Report {
		r := fine
		edit(&r)
		return r
	}
	for _, c := range []struct {
		about string
		said  core.Report
		comes bool
	}{
		{"its mysqld runs", fine, true},
		{"its manager was started, and does not know the Cluster yet",
			with(func(r *core.Report) { r.State = core.Starting }), true},
		{"its mysqld recovers", with(func(r *core.Report) { r.State = core.Recovering }), true},
		{"it failed", with(func(r *core.Report) { r.State = core.Failed }), false},
		{"it has no data", with(func(r *core.Report) { r.Data = core.DataEmpty }), false},
		{"it is being stopped", with(func(r *core.Report) { r.Terminating = true }), false},
		{"it has promised to take no writes", with(func(r *core.Report) { r.NoWritesBelow = 5 }), false},
		{"another answered", with(func(r *core.Report) { r.Instance = "db-3" }), false},
	} {
		now := time.Unix(100, 0)
		got := AskSuccessor{Instance: "db-2", Epoch: 4}.Comes(c.said, now)
		if (got != nil) != c.comes || got != nil && *got != (Coming{"db-2", 4, now}) {
			t.Errorf("%s: %+v", c.about, got)
		}
	}
}
