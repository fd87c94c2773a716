package operator

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
)

// describeRestore says how far the restore is with which the Cluster begins. What it was
// stays: the instance that restored may be gone.
func describeRestore(s *v1alpha1.ClusterStatus, c *v1alpha1.Cluster, o core.Observation) {
	r, waits := restoreReported(o)
	is := s.Restore
	switch {
	case r != nil && (is == nil || !observation.RestoreFrom(is).Same(r)):
		s.Restore = observation.RestoreTo(r)
	case r == nil && is != nil && waits && is.Stage != v1alpha1.RestoreCompleted:
		s.Restore = is.DeepCopy()
		s.Restore.Stage = v1alpha1.RestoreWaiting
		observation.Unforeseen(s.Restore)
	}
	switch r := s.Restore; {
	case r == nil:
	case r.Source != "":
		s.Cloned = s.Cloned || r.Stage == v1alpha1.RestoreCompleted
	default:
		cond := restoreCondition(s.Restore)
		cond.ObservedGeneration = c.Generation
		meta.SetStatusCondition(&s.Conditions, cond)
	}
}

// restoreReported is what the instance says that restores, or has restored; waits if it says
// that it could not go on.
func restoreReported(o core.Observation) (r *core.Restore, waits bool) {
	for i := range o.Instances {
		said, known := o.Instances[i].Report.Get()
		if known && said.Restore != nil {
			return said.Restore, false
		}
		waits = waits || known && said.State == core.Failed
	}
	return nil, waits && o.Cluster.FirstData.IsElsewhere()
}

func restoreCondition(r *v1alpha1.RestoreStatus) metav1.Condition {
	said := observation.RestoreFrom(r)
	if len(said.PassedOver) == 0 {
		return condition(v1alpha1.ConditionNewestRestored, true, string(core.ReasonNewestRestored),
			"the data begin with backup "+r.BackupID)
	}
	return condition(v1alpha1.ConditionNewestRestored, false, string(core.ReasonBackupPassedOver),
		fmt.Sprintf("the data begin with backup %s, because newer backups cannot be used (%s). The restore replays "+
			"the archive from there, which takes longer. Find out what happened to the newer backups, and take a new "+
			"Backup of the Cluster that they are of", r.BackupID, said.PassedText()))
}

// tellRestore tells that backups were passed over, once for all that were.
func (r *Reconciler) tellRestore(c *v1alpha1.Cluster, before []metav1.Condition) {
	now := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionNewestRestored)
	was := meta.FindStatusCondition(before, v1alpha1.ConditionNewestRestored)
	if now == nil || now.Status == metav1.ConditionTrue || was != nil && was.Message == now.Message {
		return
	}
	r.tell(c, core.Event{Warning: true, Reason: core.Reason(now.Reason), Message: now.Message})
}
