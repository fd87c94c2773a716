package operator

import (
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// TestAChangeOfThePrimaryLooksAtNothingFirst: what a cluster needs besides its
// instances is looked at in peace, and not while nobody takes writes.
func TestAChangeOfThePrimaryLooksAtNothingFirst(t *testing.T) {
	writes, stopped := core.Report{State: core.Running, WritableEpoch: 1}, core.Report{State: core.Stopped}
	moment := time.Now().Add(-time.Second)
	for name, tc := range map[string]struct {
		says    *core.Report
		change  func(*v1alpha1.Cluster)
		at      time.Time
		noLease bool
		looks   bool
	}{
		"all is well":              {says: &writes, at: moment, looks: true},
		"the primary has stopped":  {says: &stopped, at: moment},
		"the primary is not heard": {at: moment},
		"a switchover is under way": {says: &writes, at: moment,
			change: func(c *v1alpha1.Cluster) { c.Status.Operation = &v1alpha1.OperationStatus{Kind: "Switchover"} }},
		"no primary was chosen yet": {at: moment, change: func(c *v1alpha1.Cluster) { c.Status.Promotion = nil },
			looks: true},
		"the spec is another": {says: &stopped, at: moment, change: func(c *v1alpha1.Cluster) { c.Generation++ },
			looks: true},
		"its Lease was deleted": {says: &stopped, at: moment, noLease: true, looks: true},
		"it was too long ago":   {says: &stopped, at: time.Now().Add(-preparedLife - time.Second), looks: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, c := newAPI(t), aCluster()
			r := newTestReconciler(t, a, a)
			ca := anAuthority(t)
			r.state(c).ready = preparation{ca, c.Generation, tc.at}
			version := "7"
			if tc.noLease {
				version = ""
			}
			r.observer.leases.note(leaseKey(clusterKey), version)
			if tc.says != nil {
				r.says("c-1", *tc.says)
			}
			if tc.change != nil {
				tc.change(c)
			}
			got, _, err := r.prepare(t.Context(), c)
			must(t, err)
			if looked := a.gets > 0; looked != tc.looks {
				t.Errorf("asked the API server %d times", a.gets)
			}
			if !tc.looks && (got != ca || r.state(c).ready.at != tc.at) {
				t.Error("what was found a moment ago is not what is used, or counts as found now")
			}
		})
	}
}
