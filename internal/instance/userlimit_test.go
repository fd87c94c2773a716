package instance

import (
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// TestALimitForTheUsersClientsDoesNotBindTheInstances: an account whose own MAX_USER_CONNECTIONS is 0
// is bound by the parameter.
func TestALimitForTheUsersClientsDoesNotBindTheInstances(t *testing.T) {
	w := newWorld(t, func(c *v1alpha1.Cluster) {
		c.Spec.MySQL.Parameters = map[string]string{"max_user_connections": "2"}
	})
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	w.join(two, one)
	w.crashManager(one)
	w.awaitPrimary(two, w.grant("db-2", core.ProofPodTerminated, "db-1", "", 0))
}
