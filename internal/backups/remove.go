package backups

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
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

// A removal that fails is started again after a quarter of the time since the deletion was
// asked for, within these bounds.
const (
	firstPause = 30 * time.Second
	maxPause   = time.Hour
)

// keepUntilRemoved has a Backup stay, when it is deleted, until its data are removed. It is
// done before the first of them can be written.
func (r *Reconciler) keepUntilRemoved(ctx context.Context, b *v1alpha1.Backup) error {
	if !strings.EqualFold(b.Spec.ReclaimPolicy, v1alpha1.ReclaimDelete) {
		return nil
	}
	before := b.DeepCopy()
	if !controllerutil.AddFinalizer(b, v1alpha1.FinalizerStoredBackup) {
		return nil
	}
	return r.Client.Patch(ctx, b, ifStill(before))
}

// ifStill is a change of an object, on the condition that it is still the one that was read.
func ifStill(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// job reads one of the Backup's; NotFound if there is none.
func (r *Reconciler) job(ctx context.Context, b *v1alpha1.Backup, name string) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	return job, r.Live.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: name}, job)
}

// drop deletes a Job, if it is still the one that was read.
func (r *Reconciler) drop(ctx context.Context, job *batchv1.Job, how metav1.DeletionPropagation) error {
	err := r.Client.Delete(ctx, job, client.Preconditions{UID: &job.UID}, client.PropagationPolicy(how))
	return client.IgnoreNotFound(err)
}

// remove brings the removal of a deleted Backup's data a step further. It ends when they are
// gone, when there are none, or when nothing can be done about them; who does not want to
// wait takes the finalizer off (kubectl cnmsql backup forget).
func (r *Reconciler) remove(ctx context.Context, b *v1alpha1.Backup) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(b, v1alpha1.FinalizerStoredBackup) {
		return ctrl.Result{}, nil
	}
	ends, err := r.namespaceEnds(ctx, b.Namespace)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case ends:
		message := "the namespace is being deleted, so that no Job can remove the backup: " +
			whereOf(b) + " stays in the store"
		ctrl.LoggerFrom(ctx).Info(message)
		r.event(b, corev1.EventTypeWarning, core.ReasonBackupForgotten, message) // if it takes any
		return ctrl.Result{}, r.letGo(ctx, b)
	case b.Removed() != nil || b.Status.BackupID == "" || b.Status.ObjectStore == nil:
		return ctrl.Result{}, r.letGo(ctx, b)
	}
	taking, err := r.endTaking(ctx, b)
	if err != nil {
		return ctrl.Result{}, err
	}
	if taking != "" {
		err := r.stored(ctx, b, metav1.ConditionUnknown, core.ReasonBackupRemovalWaits,
			"the Job "+taking+" has to end first, which may still write: look at its Pod if that takes long")
		return ctrl.Result{RequeueAfter: lookAgain}, err
	}
	return r.followRemoval(ctx, b)
}

func whereOf(b *v1alpha1.Backup) string {
	return fmt.Sprintf("%s/base/%s", b.Status.DestinationPath, b.Status.BackupID)
}

func (r *Reconciler) namespaceEnds(ctx context.Context, name string) (bool, error) {
	var ns corev1.Namespace
	err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &ns)
	return ns.DeletionTimestamp != nil, client.IgnoreNotFound(err)
}

// endTaking ends the Job that takes the backup, and waits until its Pods are gone; its name
// as long as they are not.
func (r *Reconciler) endTaking(ctx context.Context, b *v1alpha1.Backup) (name string, err error) {
	job, err := r.job(ctx, b, resources.BackupJobName(b.Name))
	if err != nil || !metav1.IsControlledBy(job, b) {
		return "", client.IgnoreNotFound(err)
	}
	if job.DeletionTimestamp == nil {
		err = r.drop(ctx, job, metav1.DeletePropagationForeground)
	}
	return job.Name, err
}

// followRemoval has the Job made that removes the data, and looks what comes of it.
func (r *Reconciler) followRemoval(ctx context.Context, b *v1alpha1.Backup) (ctrl.Result, error) {
	job, err := r.job(ctx, b, resources.RemovalJobName(b.Name))
	switch {
	case apierrors.IsNotFound(err):
		return r.beginRemoval(ctx, b, nil)
	case err != nil:
		return ctrl.Result{}, err
	case job.Annotations[v1alpha1.AnnotationBackupUID] != string(b.UID):
		return r.removalFails(ctx, b, "the Job "+job.Name+" exists and is not this Backup's; delete it")
	case job.DeletionTimestamp != nil:
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}
	if done := conditionOf(job, batchv1.JobComplete); done != nil {
		message := "the Backup was deleted, and " + whereOf(b) + " with it"
		if err := r.stored(ctx, b, metav1.ConditionFalse, core.ReasonBackupRemoved, message); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.letGo(ctx, b)
	}
	failed := conditionOf(job, batchv1.JobFailed)
	if failed == nil {
		return r.beginRemoval(ctx, b, job) // its Secret, if the operator ended before that
	}
	if r.Now().Sub(failed.LastTransitionTime.Time) >= r.pause(b) {
		return ctrl.Result{RequeueAfter: lookAgain}, r.drop(ctx, job, metav1.DeletePropagationBackground)
	}
	why, err := r.lastWords(ctx, job)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.removalFails(ctx, b, fmt.Sprintf("the Job %s failed (%s): %s", job.Name, failed.Message, why))
}

func conditionOf(job *batchv1.Job, of batchv1.JobConditionType) *batchv1.JobCondition {
	i := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == of && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &job.Status.Conditions[i]
}

// pause before a removal is tried again.
func (r *Reconciler) pause(b *v1alpha1.Backup) time.Duration {
	return min(max(r.Now().Sub(b.DeletionTimestamp.Time)/4, firstPause), maxPause)
}

// lastWords are those of the Job's Pods.
func (r *Reconciler) lastWords(ctx context.Context, job *batchv1.Job) (string, error) {
	var pods corev1.PodList
	its := client.MatchingLabels{batchv1.JobNameLabel: job.Name}
	if err := r.Live.List(ctx, &pods, client.InNamespace(job.Namespace), its); err != nil {
		return "", err
	}
	for _, p := range pods.Items {
		for _, s := range p.Status.ContainerStatuses {
			if s.State.Terminated == nil || s.State.Terminated.Message == "" {
				continue
			}
			lines := strings.Split(strings.TrimSpace(s.State.Terminated.Message), "\n")
			return lines[len(lines)-1], nil
		}
	}
	return "look at its Pods", nil
}

// beginRemoval makes the Job, if there is none yet, and the Secret that goes with it. The
// Cluster may be gone: then the Pod has no settings of it.
func (r *Reconciler) beginRemoval(
	ctx context.Context, b *v1alpha1.Backup, job *batchv1.Job,
) (ctrl.Result, error) {
	files, err := resources.StoreFiles(b.Status.ObjectStore, SecretReader(ctx, r.Live, b.Namespace))
	if missing := AsMissing(err); missing != nil {
		return r.removalFails(ctx, b, missing.Error())
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	files[backupjob.FileTask], err = json.Marshal(backupjob.Task{Namespace: b.Namespace, Backup: b.Name,
		BackupUID: string(b.UID), ID: b.Status.BackupID, Cluster: b.Spec.Cluster.Name})
	if err != nil {
		return ctrl.Result{}, err
	}
	if job == nil {
		c, key := &v1alpha1.Cluster{}, client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.Cluster.Name}
		if err := r.Client.Get(ctx, key, c); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		c.Name, c.Namespace = key.Name, key.Namespace
		job = resources.RemovalJob(c, b, r.OperatorImage)
		if err := r.Client.Create(ctx, job, client.FieldOwner(resources.FieldManager)); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.removalAccount(ctx, job, b); err != nil {
		return ctrl.Result{}, err
	}
	secret := resources.RemovalSecret(job, b, files)
	err = r.Client.Create(ctx, secret, client.FieldOwner(resources.FieldManager))
	if !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: lookAgain}, err
	}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return ctrl.Result{}, err
	}
	if secret.Annotations[v1alpha1.AnnotationBackupUID] != string(b.UID) {
		return r.removalFails(ctx, b, "the Secret "+secret.Name+" exists and is not this Backup's; delete it")
	}
	return ctrl.Result{RequeueAfter: lookAgain}, nil
}

// removalAccount has the ServiceAccount made again if it went before the Backup does, as with a
// deletion in the foreground. That of the backup's own Job stays as it is.
func (r *Reconciler) removalAccount(ctx context.Context, job *batchv1.Job, b *v1alpha1.Backup) error {
	account := resources.RemovalAccount(job, b)
	if account == nil {
		return nil
	}
	err := r.Client.Create(ctx, account, client.FieldOwner(resources.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// removalFails tells why the data are still there, and what can be done.
func (r *Reconciler) removalFails(ctx context.Context, b *v1alpha1.Backup, why string) (ctrl.Result, error) {
	message := fmt.Sprintf("%s is not removed from the store: %s. It is tried again; "+
		"to leave the data there and be rid of the Backup: kubectl cnmsql backup forget %s -n %s", whereOf(b),
		why, b.Name, b.Namespace)
	err := r.stored(ctx, b, metav1.ConditionUnknown, core.ReasonBackupRemovalFailed, message)
	return ctrl.Result{RequeueAfter: r.pause(b)}, err
}

// stored writes the condition Stored, and tells it when it changes.
func (r *Reconciler) stored(
	ctx context.Context, b *v1alpha1.Backup, is metav1.ConditionStatus, reason core.Reason, message string,
) error {
	old := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionBackupStored)
	if old != nil && old.Status == is && old.Reason == string(reason) && old.Message == message {
		return nil
	}
	now := metav1.Condition{Type: v1alpha1.ConditionBackupStored, Status: is, Reason: string(reason), Message: message}
	if err := r.condition(ctx, b, now); err != nil {
		return client.IgnoreNotFound(err)
	}
	switch reason {
	case core.ReasonBackupRemoved:
		r.event(b, corev1.EventTypeNormal, reason, message)
	case core.ReasonBackupRemovalFailed:
		r.event(b, corev1.EventTypeWarning, reason, message)
	}
	return nil
}

// letGo lets the Backup go, and the Job with it.
func (r *Reconciler) letGo(ctx context.Context, b *v1alpha1.Backup) error {
	job, err := r.job(ctx, b, resources.RemovalJobName(b.Name))
	if err == nil && job.Annotations[v1alpha1.AnnotationBackupUID] == string(b.UID) {
		err = r.drop(ctx, job, metav1.DeletePropagationBackground)
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	before := b.DeepCopy()
	controllerutil.RemoveFinalizer(b, v1alpha1.FinalizerStoredBackup)
	return client.IgnoreNotFound(r.Client.Patch(ctx, b, ifStill(before)))
}
