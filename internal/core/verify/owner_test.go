package verify

import (
	"testing"

	"cnmsql.co/internal/core"
)

// TestBackupsOfAnEarlierClusterAreNotVerified: that they can be restored says nothing of the
// Cluster that has their name now.
func TestBackupsOfAnEarlierClusterAreNotVerified(t *testing.T) {
	w := newWorld().until(t, "restore")
	w.f.Copy.Blocked, w.f.Copy.NotOurs = "its UID is u-1, and that of this one is u-2", true
	if p := w.look(); !p.Record.Phase.HasEnded() {
		t.Errorf("it goes on: %+v", p.Record)
	}
	w.ends(t, Failed, core.VerifyNotOurs, "no backup of this Cluster", "u-1", "another path")
}
