package backups

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// record writes down what was decided where the Job may not write, and has a Backup stay, when it
// is deleted, until its data are removed, if it says so. Both are done before the first of them can
// be written.
func (r *Reconciler) record(ctx context.Context, b *v1alpha1.Backup, t *taking) error {
	before := b.DeepCopy()
	if err := t.record().WriteTo(b); err != nil {
		return err
	}
	if strings.EqualFold(b.Spec.ReclaimPolicy, v1alpha1.ReclaimDelete) {
		controllerutil.AddFinalizer(b, v1alpha1.FinalizerStoredBackup)
	}
	return r.Client.Patch(ctx, b, ifStill(before))
}

// ifStill is a change of an object, on the condition that it is still the one that was read.
func ifStill(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func (r *Reconciler) remover() *remover {
	return &remover{client: r.Client, live: r.Live, image: r.OperatorImage, now: r.Now}
}

// remove brings the removal of a deleted Backup's data a step further. It ends when they are
// gone, when there are none, or when nothing can be done about them; who does not want to
// wait takes the finalizer off (kubectl cnmsql backup forget).
func (r *Reconciler) remove(ctx context.Context, b *v1alpha1.Backup) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(b, v1alpha1.FinalizerStoredBackup) {
		return ctrl.Result{}, nil
	}
	m, err := r.removal(ctx, b)
	if err != nil {
		return ctrl.Result{}, err
	}
	is := resources.RecordOf(b)
	ends, err := r.remover().namespaceEnds(ctx, b.Namespace)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case ends:
		message := "the namespace is being deleted, so that no Job can remove the backup: " +
			m.where + " stays in the store"
		ctrl.LoggerFrom(ctx).Info(message)
		r.event(b, corev1.EventTypeWarning, core.ReasonBackupForgotten, message) // if it takes any
		return ctrl.Result{}, r.letGo(ctx, m, b)
	case b.Removed() != nil || is.ID == "" || is.Store == nil:
		return ctrl.Result{}, r.letGo(ctx, m, b)
	}
	taking, err := r.remover().endTaking(ctx, b)
	if err != nil {
		return ctrl.Result{}, err
	}
	if taking != "" {
		err := m.tell(ctx, metav1.ConditionUnknown, core.ReasonBackupRemovalWaits,
			"the Job "+taking+" has to end first, which may still write: look at its Pod if that takes long")
		return ctrl.Result{RequeueAfter: lookAgain}, err
	}
	done, again, err := r.remover().follow(ctx, m)
	if err != nil || !done {
		return ctrl.Result{RequeueAfter: again}, err
	}
	if err := m.tell(ctx, metav1.ConditionFalse, core.ReasonBackupRemoved,
		"the Backup was deleted, and "+m.where+" with it"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.letGo(ctx, m, b)
}

// removal is that of a Backup's data. The Cluster may be gone: then the Pod has no settings of it but the
// Secrets by which its image is pulled.
func (r *Reconciler) removal(ctx context.Context, b *v1alpha1.Backup) (*removal, error) {
	is := resources.RecordOf(b)
	c, key := &v1alpha1.Cluster{}, client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.Cluster.Name}
	switch err := r.Client.Get(ctx, key, c); {
	case apierrors.IsNotFound(err):
		c.Name, c.Namespace = key.Name, key.Namespace
		c.Spec.ImagePullSecrets = is.PullSecrets
	case err != nil:
		return nil, err
	}
	return &removal{Removal: resources.BackupRemoval(c, b), object: b, kind: "Backup",
		told:   hasFailed(b.Status.Conditions, v1alpha1.ConditionBackupStored),
		where:  fmt.Sprintf("%s/base/%s", is.Path, is.ID),
		forget: fmt.Sprintf("kubectl cnmsql backup forget %s -n %s", b.Name, b.Namespace),
		task: backupjob.Task{Namespace: b.Namespace, Backup: b.Name, BackupUID: string(b.UID),
			ID: is.ID, Cluster: c.Name},
		tell: func(ctx context.Context, is metav1.ConditionStatus, reason core.Reason, message string) error {
			return r.stored(ctx, b, is, reason, message)
		}}, nil
}

// hasFailed reports whether the condition of a removal says why its last Job failed.
func hasFailed(all []metav1.Condition, of string) bool {
	is := meta.FindStatusCondition(all, of)
	return is != nil && is.Reason == string(core.ReasonBackupRemovalFailed)
}

// isFailing reports whether the reason tells that the data cannot be removed: somebody has to see to it.
func isFailing(reason core.Reason) bool {
	return reason == core.ReasonBackupRemovalHeld || reason == core.ReasonBackupRemovalFailed
}

// stored writes the condition Stored, and tells it when it changes.
func (r *Reconciler) stored(
	ctx context.Context, b *v1alpha1.Backup, is metav1.ConditionStatus, reason core.Reason, message string,
) error {
	now := metav1.Condition{Type: v1alpha1.ConditionBackupStored, Status: is, Reason: string(reason), Message: message}
	if says(b.Status.Conditions, now) {
		return nil
	}
	if err := r.condition(ctx, b, now); err != nil {
		return client.IgnoreNotFound(err)
	}
	switch {
	case reason == core.ReasonBackupRemoved:
		r.event(b, corev1.EventTypeNormal, reason, message)
	case isFailing(reason):
		r.event(b, corev1.EventTypeWarning, reason, message)
	}
	return nil
}

// says reports whether the condition stands there already, with the same status and the same
// words.
func says(all []metav1.Condition, c metav1.Condition) bool {
	old := meta.FindStatusCondition(all, c.Type)
	return old != nil && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message
}

// letGo lets the Backup go, and the Job with it.
func (r *Reconciler) letGo(ctx context.Context, m *removal, b *v1alpha1.Backup) error {
	if err := r.remover().end(ctx, m); err != nil {
		return err
	}
	before := b.DeepCopy()
	controllerutil.RemoveFinalizer(b, v1alpha1.FinalizerStoredBackup)
	return client.IgnoreNotFound(r.Client.Patch(ctx, b, ifStill(before)))
}
