package agent_test

import (
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// TestWhatAnotherProcessCouldNotGoOnWithKeepsTheManager holds each reason for which a binary is not exchanged, and that
// a primary may whose lease was renewed when it was due, and a second ago besides.
func TestWhatAnotherProcessCouldNotGoOnWithKeepsTheManager(t *testing.T) {
	now := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	within := core.LeaseRenewal + time.Second
	for name, c := range map[string]struct {
		change func(*agent.Facts)
		want   string
	}{
		"a primary at rest":        {func(*agent.Facts) {}, ""},
		"its volume is not locked": {func(f *agent.Facts) { f.Locked = false }, "locked its own volume"},
		"its volume is another's":  {func(f *agent.Facts) { f.Foreign = true }, "locked its own volume"},
		"it has seen no Cluster":   {func(f *agent.Facts) { f.Cluster = nil }, "locked its own volume"},
		"its Pod is being stopped": {func(f *agent.Facts) { f.TerminatingSince = now }, "being stopped"},
		"it does something":        {func(f *agent.Facts) { f.Activity = "cloning" }, "cloning is under way"},
		"it hands the role over":   {func(f *agent.Facts) { f.Member.HandingTo = "c-2" }, "handed over"},
		"its group is lost":        {func(f *agent.Facts) { f.Member.ExpelHeld = true }, "lost the majority"},
		"mysqld hangs":             {func(f *agent.Facts) { f.Mysqld.Answers = false }, "does not answer"},
		"mysqld is down":           {func(f *agent.Facts) { f.Mysqld.Up, f.Mysqld.Answers = false, false }, ""},
		"the lease is not too old": {func(f *agent.Facts) { f.LeaseRenewed = now.Add(-within) }, ""},
		"the lease is older":       {func(f *agent.Facts) { f.LeaseRenewed = now.Add(-within - 1) }, "not renewed"},
		"a replica has none": {func(f *agent.Facts) {
			f.LeaseRenewed, f.WritableEpoch = time.Time{}, 0
		}, ""},
		"a Cluster without leases": {func(f *agent.Facts) {
			f.LeaseRenewed, f.Cluster = time.Time{}, &agent.Cluster{}
		}, ""},
	} {
		f := &agent.Facts{Now: now, Locked: true, WritableEpoch: 3, LeaseRenewed: now,
			Cluster: &agent.Cluster{Lease: true}}
		f.Mysqld.Up, f.Mysqld.Answers = true, true
		c.change(f)
		got := f.MayNotHandOver()
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
