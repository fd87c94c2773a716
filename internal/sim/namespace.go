package sim

import (
	"cnmsql.co/internal/core"
)

// stay fails the run if the Cluster is to be deleted with its namespace, which nobody deletes here. Whether somebody
// does is known while a Pod is being stopped, and the API server answers.
func (op *operator) stay() {
	var ends core.Fact[bool]
	for name := range op.pods.objects {
		if watched[podObject](op.pods, name).deleting && op.w.connected(op.machine, apiMachine) {
			ends = core.Known(false, op.clock(), op.clock())
		}
	}
	for _, e := range core.EndWithNamespace(clusterName, ends) {
		op.w.fail("I6", "%s, and nobody deletes that", e)
	}
}
