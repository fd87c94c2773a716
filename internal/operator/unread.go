package operator

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"cnmsql.co/internal/apiconn"
	"cnmsql.co/internal/core"
)

// tellUnread tells, once a version of it, of a Cluster that cannot be read, and gives any other
// error back. It is looked at again when it changes.
func (r *Reconciler) tellUnread(ctx context.Context, key types.NamespacedName, err error) error {
	unread := apiconn.AsUnread(err)
	if unread == nil {
		return err
	}
	r.Metrics.Unread(key)
	state, version := r.clusters.of(key), unread.Object.GetResourceVersion()
	if state.unread == version {
		return nil
	}
	state.unread = version
	ctrl.LoggerFrom(ctx).Error(err, "the operator leaves the Cluster alone, failovers included, until the value that "+
		"cannot be read is corrected")
	r.tell(unread.Object, core.Event{Warning: true, Reason: core.ReasonUnreadable,
		Message: "the operator leaves it alone, failovers included: " + err.Error()})
	return nil
}
