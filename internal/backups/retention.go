package backups

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/backup"
	"cnmsql.co/internal/resources"
)

// retentionOf is what the Job has to keep in the store; nil for all. A Backup that names a
// store of its own is kept there: what is brought to another place on purpose does not go by
// the Cluster's policy. A policy that cannot be read, as that of an object from before the
// API server knew how to refuse it, removes nothing.
func retentionOf(b *v1alpha1.Backup, d *v1alpha1.BackupDefaults) *backupjob.Retention {
	if d.RetentionPolicy == "" || b.Spec.ObjectStore != nil {
		return nil
	}
	window, err := backup.Window(d.RetentionPolicy)
	if err != nil {
		return nil
	}
	out := &backupjob.Retention{Window: window, Minimum: 1}
	if d.MinimumBackups != nil {
		out.Minimum = int(*d.MinimumBackups)
	}
	return out
}

// expired tells what the Job of a Backup has removed from the store: to the Backups that
// were there, to the Cluster, and last to this Backup. Until it is told there, all of it is
// told again.
func (r *Reconciler) expired(ctx context.Context, b *v1alpha1.Backup) error {
	done := b.Status.Retention
	if b.Spec.ObjectStore != nil {
		return nil // nothing expires there, whatever its Job says
	}
	if done == nil || meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionBackupRetention) != nil {
		return nil
	}
	if err := errors.Join(r.markExpired(ctx, b), r.noteRun(ctx, b)); err != nil {
		return err
	}
	condition := metav1.Condition{Type: v1alpha1.ConditionBackupRetention, Status: metav1.ConditionTrue,
		Reason: string(core.ReasonRetained), Message: removedText(done)}
	if done.Held != nil {
		condition.Status = metav1.ConditionFalse
		condition.Reason = cmp.Or(done.Held.Reason, string(core.RetentionFailed))
		condition.Message += "; " + done.Held.Message
	}
	if err := r.condition(ctx, b, condition); err != nil {
		return err
	}
	switch {
	case done.Held == nil:
		r.event(b, corev1.EventTypeNormal, core.ReasonRetained, condition.Message)
	case core.Reason(done.Held.Reason) != core.RetentionYoung: // which is as it should be
		r.event(b, corev1.EventTypeWarning, core.ReasonRetentionHeld, condition.Reason+": "+condition.Message)
	}
	return nil
}

// untold says so when the Job of a complete Backup has ended and did not tell what has expired:
// it may have needed more memory than it was given, for it looks at all of the archive, and then
// so will the next.
func (r *Reconciler) untold(ctx context.Context, b *v1alpha1.Backup) error {
	s := &b.Status
	if s.Phase != v1alpha1.BackupCompleted || s.Retention != nil || s.JobName == "" ||
		meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionBackupRetention) != nil {
		return nil
	}
	var job batchv1.Job
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: resources.BackupJobName(b.Name)}, &job)
	if err != nil || ended(&job) == "" {
		return client.IgnoreNotFound(err) // of one that is gone nobody knows what it was to do
	}
	var files corev1.Secret
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(&job), &files); err != nil {
		return client.IgnoreNotFound(err)
	}
	var task backupjob.Task
	if json.Unmarshal(files.Data[backupjob.FileTask], &task) != nil || task.Retention == nil {
		return nil // it was not told to
	}
	condition := metav1.Condition{Type: v1alpha1.ConditionBackupRetention, Status: metav1.ConditionFalse,
		Reason: string(core.RetentionFailed), Message: "the Job " + job.Name + " ended before it had told what has " +
			"expired, and maybe before anything was removed: look how its Pod ended. If it lacked memory, raise " +
			"spec.backup.jobTemplate.resources; the next backup looks again"}
	// What is known here may be older than the Job's last word.
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil || b.Status.Retention != nil {
		return client.IgnoreNotFound(err)
	}
	if err := r.condition(ctx, b, condition); err != nil {
		return err
	}
	r.event(b, corev1.EventTypeWarning, core.ReasonRetentionHeld, condition.Reason+": "+condition.Message)
	return nil
}

// condition writes a condition of a Backup.
func (r *Reconciler) condition(ctx context.Context, b *v1alpha1.Backup, c metav1.Condition) error {
	return r.change(ctx, b, func(s *v1alpha1.BackupStatus) { meta.SetStatusCondition(&s.Conditions, c) })
}

func removedText(done *v1alpha1.BackupRetention) string {
	text := fmt.Sprintf("%d backups and %d parts of the archive that had expired were removed from the store",
		len(done.RemovedBackups), done.RemovedParts)
	if done.KeptSince != nil {
		text += ", which has all since " + done.KeptSince.UTC().Format("2006-01-02T15:04:05Z")
	}
	if names := done.UnknownNames; len(names) > 0 {
		text += "; other objects there stay: " + strings.Join(names, ", ")
		if more := done.UnknownObjects - int64(len(names)); more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
	}
	return text
}

// markExpired tells the Backups of which the data were removed. They stay Completed.
func (r *Reconciler) markExpired(ctx context.Context, by *v1alpha1.Backup) error {
	if len(by.Status.Retention.RemovedBackups) == 0 {
		return nil
	}
	var all v1alpha1.BackupList
	if err := r.Client.List(ctx, &all, client.InNamespace(by.Namespace)); err != nil {
		return err
	}
	there := resources.RecordOf(by).Path
	for i := range all.Items {
		b := &all.Items[i]
		is := resources.RecordOf(b)
		if b.Spec.Cluster.Name != by.Spec.Cluster.Name || is.Path != there ||
			!slices.Contains(by.Status.Retention.RemovedBackups, is.ID) || b.Removed() != nil {
			continue
		}
		message := fmt.Sprintf("it had expired, and was removed from the store after the Backup %s", by.Name)
		err := r.condition(ctx, b, metav1.Condition{Type: v1alpha1.ConditionBackupStored, Status: metav1.ConditionFalse,
			Reason: string(core.ReasonExpired), Message: message})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			r.event(b, corev1.EventTypeNormal, core.ReasonExpired, message)
		}
	}
	return nil
}

// noteRun writes into the Cluster's status when it was last looked what has expired.
func (r *Reconciler) noteRun(ctx context.Context, b *v1alpha1.Backup) error {
	c := &v1alpha1.Cluster{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.Cluster.Name}, c); err != nil {
		return client.IgnoreNotFound(err)
	}
	ran := b.Status.Retention.RanAt
	if last := c.Status.LastRetentionRunTime; last != nil && !last.Before(&ran) {
		return nil
	}
	before := c.DeepCopy()
	c.Status.LastRetentionRunTime = &ran
	return client.IgnoreNotFound(r.Client.Status().Patch(ctx, c, client.MergeFrom(before)))
}
