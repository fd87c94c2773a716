package backups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core/backup"
	"cnmsql.co/internal/queue"
	"cnmsql.co/internal/tell"
)

// readAgain is the pause before a ScheduledBackup is looked at again of which the
// cache was behind.
const readAgain = 200 * time.Millisecond

// ScheduledReconciler makes the Backups of ScheduledBackups.
type ScheduledReconciler struct {
	Client client.Client
	// Live reads from the API server. Whatever is made is decided on what it says: a
	// cache may not know yet what was made a moment ago.
	Live     client.Reader
	Recorder events.EventRecorder
	// Now is time.Now when nil.
	Now func() time.Time
}

// SetupWithManager has the manager wake it: for a ScheduledBackup, for the Backups that it
// made, whoever owns them, and for a Cluster that comes into being.
func (r *ScheduledReconciler) SetupWithManager(mgr ctrl.Manager) error {
	made := predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return true },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
	return ctrl.NewControllerManagedBy(mgr).Named("scheduledbackup").
		For(&v1alpha1.ScheduledBackup{}).
		Watches(&v1alpha1.Backup{}, handler.EnqueueRequestsFromMapFunc(scheduleOf)).
		Watches(&v1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.schedulesFor), builder.WithPredicates(made)).
		WithOptions(queue.Unmeasured()).
		Complete(r)
}

// scheduleOf is the ScheduledBackup that a Backup was made by; none when a user made it.
func scheduleOf(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[v1alpha1.LabelScheduledBackup]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}

// schedulesFor are the ScheduledBackups of a Cluster.
func (r *ScheduledReconciler) schedulesFor(ctx context.Context, cluster client.Object) []reconcile.Request {
	var all v1alpha1.ScheduledBackupList
	if err := r.Client.List(ctx, &all, client.InNamespace(cluster.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot list the ScheduledBackups of a Cluster", "cluster", cluster.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if all.Items[i].Spec.Cluster.Name == cluster.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

// Reconcile looks at one ScheduledBackup, and makes its Backup if one is due. The order is
// that of backup.SchedulePlan: it can be cut off anywhere, and be repeated.
func (r *ScheduledReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	v, err := r.view(ctx, r.Client, req.NamespacedName)
	if v == nil || err != nil {
		return ctrl.Result{}, err
	}
	plan := backup.Decide(v.facts)
	if plan.Create != nil {
		if v, err = r.view(ctx, r.Live, req.NamespacedName); v == nil || err != nil {
			return ctrl.Result{}, err
		}
		if plan, err = r.make(ctx, v); err != nil {
			return ctrl.Result{}, err
		}
	}
	err = r.publish(ctx, v.object, plan)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: readAgain}, nil
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{RequeueAfter: plan.Wake}, r.tidy(ctx, v, plan.Delete)
}

// view is one look at a ScheduledBackup and what belongs to it.
type view struct {
	object  *v1alpha1.ScheduledBackup
	cluster *v1alpha1.Cluster // whose Backups they are; nil when nothing asks for it
	backups []v1alpha1.Backup // those that this schedule made
	facts   backup.Schedule
}

// view gathers what is decided on; nil when there is no ScheduledBackup, or it is going.
func (r *ScheduledReconciler) view(ctx context.Context, from client.Reader, key types.NamespacedName) (*view, error) {
	v := &view{object: &v1alpha1.ScheduledBackup{}}
	if err := from.Get(ctx, key, v.object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if v.object.DeletionTimestamp != nil {
		return nil, nil
	}
	var labelled v1alpha1.BackupList
	its := client.MatchingLabels{v1alpha1.LabelScheduledBackup: key.Name}
	if err := from.List(ctx, &labelled, client.InNamespace(key.Namespace), its); err != nil {
		return nil, err
	}
	for _, b := range labelled.Items {
		if isMadeBy(v.object, &b) {
			v.backups = append(v.backups, b)
		}
	}
	v.facts = factsOf(v.object, v.backups)
	v.facts.Now = r.now()
	if v.object.Spec.BackupOwnerReference != v1alpha1.BackupOwnerCluster {
		return v, nil
	}
	return v, v.findOwner(ctx, from)
}

func (r *ScheduledReconciler) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// findOwner looks for the Cluster that has to own the Backups. With one that is being
// deleted, they would be deleted at once.
func (v *view) findOwner(ctx context.Context, from client.Reader) error {
	var c v1alpha1.Cluster
	name := v.object.Spec.Cluster.Name
	err := from.Get(ctx, types.NamespacedName{Namespace: v.object.Namespace, Name: name}, &c)
	switch {
	case apierrors.IsNotFound(err):
		v.facts.Hindered = fmt.Sprintf("Cluster %s does not exist, and is to own the Backups "+
			"(spec.backupOwnerReference): "+
			"create it, or correct spec.cluster.name", name)
	case err != nil:
		return err
	case c.DeletionTimestamp != nil:
		v.facts.Hindered = fmt.Sprintf("Cluster %s is being deleted, and with it whatever it owns "+
			"(spec.backupOwnerReference): "+
			"no Backup is made of it", name)
	default:
		v.cluster = &c
	}
	return nil
}

// isMadeBy reports whether a Backup is of this schedule: it has its label, and no controller
// but it. One that a former ScheduledBackup of the name made and did not own counts, too.
func isMadeBy(sb *v1alpha1.ScheduledBackup, b *v1alpha1.Backup) bool {
	controller := metav1.GetControllerOfNoCopy(b)
	return b.Labels[v1alpha1.LabelScheduledBackup] == sb.Name && (controller == nil || controller.UID == sb.UID)
}

func factsOf(sb *v1alpha1.ScheduledBackup, made []v1alpha1.Backup) backup.Schedule {
	s := backup.Schedule{
		Name: sb.Name, Created: sb.CreationTimestamp.Time, Suspended: sb.Spec.Suspend, Immediate: sb.Spec.Immediate,
		KeepCompleted: number(sb.Spec.SuccessfulBackupsHistoryLimit),
		KeepFailed:    number(sb.Spec.FailedBackupsHistoryLimit),
		Status:        Remembered(sb.Status.LastCheckTime, sb.Status.LastScheduleTime, sb.Status.NextScheduleTime),
	}
	s.Status.LastBackup, s.Status.Problem = sb.Status.LastBackup, sb.Status.Problem
	SetSlots(&s, "spec", sb.Spec.Schedule, sb.Spec.TimeZone, s.Created)
	for _, b := range made {
		s.Backups = append(s.Backups, backup.Made{Name: b.Name, Outcome: outcomeOf(b.Status.Phase),
			Created: b.CreationTimestamp.Time, Deleted: b.DeletionTimestamp != nil})
	}
	return s
}

func outcomeOf(phase string) backup.Outcome {
	switch phase {
	case v1alpha1.BackupCompleted:
		return backup.Completed
	case v1alpha1.BackupFailed:
		return backup.Failed
	default:
		return backup.Unfinished
	}
}

// make makes the Backup that is due, and returns what is left to do. What stands in the way
// and does not pass by itself becomes a problem that is told.
func (r *ScheduledReconciler) make(ctx context.Context, v *view) (backup.SchedulePlan, error) {
	plan := backup.Decide(v.facts)
	if plan.Create == nil {
		return plan, nil
	}
	err := r.create(ctx, v, plan.Create.Name)
	var user *userError
	if errors.As(err, &user) {
		v.facts.Hindered = user.Error()
		return backup.Decide(v.facts), nil
	}
	return plan, err
}

// userError says why a Backup cannot be made, and what to do.
type userError struct{ text string }

func (e *userError) Error() string { return e.text }

// create makes a Backup. One of the name that this schedule made already is the same: the
// one who made it did not get to write that down.
func (r *ScheduledReconciler) create(ctx context.Context, v *view, name string) error {
	err := r.Client.Create(ctx, backupOf(v, name))
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.adopt(ctx, v, name)
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		return &userError{fmt.Sprintf("Backup %s is refused: %s; it is tried again", name, err)}
	case err != nil:
		return fmt.Errorf("create Backup %s: %w", name, err)
	}
	return nil
}

func (r *ScheduledReconciler) adopt(ctx context.Context, v *view, name string) error {
	var there v1alpha1.Backup
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: v.object.Namespace, Name: name}, &there); err != nil {
		return fmt.Errorf("look at Backup %s, which exists: %w", name, err)
	}
	if !isMadeBy(v.object, &there) {
		return &userError{fmt.Sprintf(
			"Backup %s exists, and this ScheduledBackup did not make it: its time is skipped, "+
				"unless you delete that Backup before the next one", name)}
	}
	return nil
}

func backupOf(v *view, name string) *v1alpha1.Backup {
	sb := v.object
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: sb.Namespace, Name: name,
		Labels: map[string]string{v1alpha1.LabelCluster: sb.Spec.Cluster.Name, v1alpha1.LabelScheduledBackup: sb.Name}}}
	b.Spec.Cluster = sb.Spec.Cluster
	b.Spec.BackupWishes = *sb.Spec.BackupWishes.DeepCopy()
	switch cmp.Or(sb.Spec.BackupOwnerReference, v1alpha1.BackupOwnerSelf) {
	case v1alpha1.BackupOwnerSelf:
		b.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(sb,
			v1alpha1.GroupVersion.WithKind("ScheduledBackup"))}
	case v1alpha1.BackupOwnerCluster:
		b.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Cluster",
			Name: v.cluster.Name, UID: v.cluster.UID}}
	}
	return b
}

// publish writes the status, if it changed, on the condition that the ScheduledBackup is
// still the one that was looked at; then the events are told.
func (r *ScheduledReconciler) publish(ctx context.Context, sb *v1alpha1.ScheduledBackup,
	plan backup.SchedulePlan) error {
	next, st := sb.DeepCopy(), plan.Status
	next.Status = v1alpha1.ScheduledBackupStatus{LastCheckTime: Stamp(st.LastCheck),
		LastScheduleTime: Stamp(st.LastSlot),
		NextScheduleTime: Stamp(st.Next), LastBackup: st.LastBackup, Problem: st.Problem}
	if !apiequality.Semantic.DeepEqual(sb.Status, next.Status) {
		if err := r.Client.Status().Update(ctx, next); err != nil {
			return fmt.Errorf("write the status: %w", err)
		}
	}
	for _, e := range plan.Events {
		tell.Event(r.Recorder, next, e)
	}
	return nil
}

// tidy deletes Backups of the names, if they are still the ones that were looked at.
func (r *ScheduledReconciler) tidy(ctx context.Context, v *view, names []string) error {
	var failed []error
	for _, name := range names {
		for i := range v.backups {
			if b := &v.backups[i]; b.Name == name {
				err := r.Client.Delete(ctx, b, client.Preconditions{UID: &b.UID},
					client.PropagationPolicy(metav1.DeletePropagationBackground))
				failed = append(failed, client.IgnoreNotFound(err))
			}
		}
	}
	return errors.Join(failed...)
}

func number(n *int32) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}
