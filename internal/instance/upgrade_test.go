package instance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// In the middle of an upgrade of MySQL. The donor runs the earlier version, and the recipient's Pod was
// made from the new image: MySQL refuses, and the instance says so. Started from the donor's image it makes
// its scratch data again, and is given its data.
func TestACloneOfAnotherSeriesIsRefusedAndToldAndOneOfTheSameIsMade(t *testing.T) {
	other := os.Getenv("CNMSQL_MYSQL_ROOTFS_OTHER")
	if other == "" {
		t.Skip("set CNMSQL_MYSQL_ROOTFS_OTHER to the files of a MySQL of another series, to try this with both")
	}
	other, err := filepath.EvalSymlinks(other)
	must(t, err)
	w := newWorld(t, nil)
	wished := w.root
	w.root = other
	one := w.start(1)
	w.bootstrap(one)
	w.root = wished
	two := w.start(2)
	for attempt := 1; attempt <= 2; attempt++ {
		w.await(two, "awaiting a clone", func(r core.Report) bool {
			return r.State == core.AwaitingClone && r.Server != nil
		})
		w.order(two, control.CloneFrom{Epoch: w.epoch(), Donor: one.opt.Listen})
		r := w.await(two, "refused", func(r core.Report) bool {
			return r.State == core.AwaitingClone && r.Clone != nil && r.Clone.Failures == attempt
		})
		if r.Reason != core.ReasonCloneFailed || !strings.Contains(r.Message, "3864") {
			t.Fatalf("%s: %q", r.Reason, r.Message)
		}
		if core.CanClone(one.report().Version, r.Version) {
			t.Fatalf("it is believed that %s gives its data to %s", one.report().Version, r.Version)
		}
	}
	w.crashManager(two)
	w.root = other
	two = w.start(2)
	w.await(two, "started again", func(r core.Report) bool { return r.Restarts >= 1 })
	w.await(two, "making its scratch data again", func(r core.Report) bool { return r.State == core.Initializing })
	w.join(two, one)
	if r := two.report(); r.Clone.Error != "" || r.Clone.Failures != 0 || r.Version != one.report().Version {
		t.Errorf("after a clone: %s, %+v", r.Version, r.Clone)
	}
}
