package backups

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// merged tells what the Job of a Backup has merged of the archive.
func (r *Reconciler) merged(ctx context.Context, b *v1alpha1.Backup) error {
	done := b.Status.Merging
	if done == nil || meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionArchiveMerged) != nil {
		return nil
	}
	text := fmt.Sprintf("%d small parts of the archive were merged into %d bundles, and %d objects removed that were "+
		"in a bundle already", done.MergedParts, done.Bundles, done.RemovedObjects)
	condition := metav1.Condition{Type: v1alpha1.ConditionArchiveMerged, Status: metav1.ConditionTrue,
		Reason: string(core.ReasonMerged), Message: text}
	if done.Held != nil {
		condition.Status = metav1.ConditionFalse
		condition.Reason = cmp.Or(done.Held.Reason, string(core.MergeFailed))
		condition.Message += "; less was merged than could be: " + done.Held.Message
	}
	if err := r.condition(ctx, b, condition); err != nil {
		return err
	}
	if done.Held != nil {
		r.event(b, corev1.EventTypeWarning, core.ReasonNotMerged, condition.Reason+": "+condition.Message)
	}
	return nil
}
