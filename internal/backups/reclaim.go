package backups

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/apiconn"
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/queue"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/tell"
)

// writersEnd is when it is looked again, at first, whether a Pod has ended that may write to the archive.
const writersEnd = time.Second

// ReclaimReconciler has the archive of a Cluster go with it, if spec.backup.reclaimPolicy says
// Delete: the Cluster stays until nobody writes there any more and all is removed.
type ReclaimReconciler struct {
	Client client.Client
	// Live reads from the API server: a cache may not know yet who writes.
	Live     client.Reader
	Recorder events.EventRecorder
	// OperatorImage is what Jobs run.
	OperatorImage string
	Now           func() time.Time
}

// SetupWithManager wakes the ReclaimReconciler for a Cluster, for the Job that removes its archive, and when a
// Pod or a Job is gone that may have written there: the caches have both in any case.
func (r *ReclaimReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("reclaim").
		For(&v1alpha1.Cluster{}).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(archiveRemovedBy)).
		Watches(&batchv1.Job{}, writerEnded()).
		Watches(&corev1.Pod{}, writerEnded()).
		WithOptions(queue.Unmeasured()).
		Complete(r)
}

func archiveRemovedBy(_ context.Context, job client.Object) []reconcile.Request {
	name := job.GetLabels()[v1alpha1.LabelCluster]
	if job.GetName() != resources.ArchiveRemovalJobName(name) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: job.GetNamespace(), Name: name}}}
}

// writerEnded wakes the Cluster that is named by an object which is gone, and by nothing else of it.
func writerEnded() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
		if name := e.Object.GetLabels()[v1alpha1.LabelCluster]; name != "" {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: e.Object.GetNamespace(), Name: name}})
		}
	}}
}

// pause is when it is looked again at what a deleted Cluster waits for. What has not ended for long may take
// for ever, as a Pod whose node is lost.
func (r *ReclaimReconciler) pause(c *v1alpha1.Cluster) time.Duration {
	return min(max(r.Now().Sub(c.DeletionTimestamp.Time)/4, writersEnd), lookAgain)
}

// Reconcile looks at one Cluster. Until it is deleted, whoever changes the policy changes what
// will happen then; afterwards, Retain still leaves there what has not gone yet.
func (r *ReclaimReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c := &v1alpha1.Cluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, c); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	goes := c.Spec.Backup.ArchiveGoes()
	switch {
	case c.DeletionTimestamp == nil:
		return ctrl.Result{}, r.keep(ctx, c, goes)
	case !controllerutil.ContainsFinalizer(c, v1alpha1.FinalizerStoredArchive):
		return ctrl.Result{}, nil
	case !goes:
		return r.leave(ctx, c, "spec.backup says so by now")
	}
	ends, err := r.remover().namespaceEnds(ctx, c.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	if ends {
		return r.leave(ctx, c, "the namespace is being deleted, so that no Job can remove it")
	}
	again, err := r.remove(ctx, c)
	if unread := apiconn.AsUnread(err); unread != nil {
		return r.waitFor(ctx, c, unread)
	}
	return again, err
}

// waitFor tells that the archive stays as long as a Backup cannot be read: it may lie there, and be taken.
func (r *ReclaimReconciler) waitFor(ctx context.Context, c *v1alpha1.Cluster, unread *apiconn.UnreadError,
) (ctrl.Result, error) {
	m := r.removal(c)
	err := m.tell(ctx, metav1.ConditionUnknown, core.ReasonBackupRemovalWaits, fmt.Sprintf("the Cluster is removed "+
		"when it is known which Backups are in %s, and that none is being taken: %s; to keep the data there and "+
		"remove the Cluster: %s", m.where, unread, m.forget))
	return ctrl.Result{RequeueAfter: lookAgain}, err
}

func (r *ReclaimReconciler) remover() *remover {
	return &remover{client: r.Client, live: r.Live, image: r.OperatorImage, now: r.Now}
}

// keep has a Cluster stay, when it is deleted, until its archive is removed.
func (r *ReclaimReconciler) keep(ctx context.Context, c *v1alpha1.Cluster, keep bool) error {
	before := c.DeepCopy()
	change := controllerutil.RemoveFinalizer
	if keep {
		change = controllerutil.AddFinalizer
	}
	if !change(c, v1alpha1.FinalizerStoredArchive) {
		return nil
	}
	return r.Client.Patch(ctx, c, ifStill(before))
}

// leave lets the Cluster go, and tells that its archive, or what is left of it, stays.
func (r *ReclaimReconciler) leave(ctx context.Context, c *v1alpha1.Cluster, why string) (ctrl.Result, error) {
	if again, err := r.awaitVolumes(ctx, c); err != nil || again > 0 {
		return ctrl.Result{RequeueAfter: again}, err
	}
	message := "the Cluster is removed, and its archive stays: " + why +
		". To remove it later, delete what lies there by hand"
	if s := c.Spec.Backup; s != nil && s.ObjectStore != nil {
		message = resources.StorePath(s.ObjectStore, c.Name) + ": " + message
	}
	ctrl.LoggerFrom(ctx).Info(message)
	r.event(c, corev1.EventTypeWarning, core.ReasonArchiveKept, message) // if the namespace takes any
	return ctrl.Result{}, r.letGo(ctx, r.removal(c), c)
}

// remove brings the removal a step further.
func (r *ReclaimReconciler) remove(ctx context.Context, c *v1alpha1.Cluster) (ctrl.Result, error) {
	m := r.removal(c)
	if meta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.ConditionArchiveStored) { // it is removed
		return r.letGoFreed(ctx, m, c)
	}
	writer, err := r.endWriters(ctx, c)
	if err != nil {
		return ctrl.Result{}, err
	}
	if writer != "" {
		err := m.tell(ctx, metav1.ConditionUnknown, core.ReasonBackupRemovalWaits, fmt.Sprintf("%s is removed once %s "+
			"has ended, which may still write there. If its node is lost, and is off, delete the Pod with --force",
			m.where, writer))
		return ctrl.Result{RequeueAfter: r.pause(c)}, err
	}
	done, again, err := r.remover().follow(ctx, m)
	if err != nil || !done {
		return ctrl.Result{RequeueAfter: again}, err
	}
	if err := r.tellBackups(ctx, c); err != nil {
		return ctrl.Result{}, err
	}
	if err := m.tell(ctx, metav1.ConditionFalse, core.ReasonArchiveRemoved,
		"the Cluster was deleted, and "+m.where+" with it"); err != nil {
		return ctrl.Result{}, err
	}
	return r.letGoFreed(ctx, m, c)
}

func (r *ReclaimReconciler) removal(c *v1alpha1.Cluster) *removal {
	m := &removal{Removal: resources.ArchiveRemoval(c), object: c, kind: "Cluster",
		told:   hasFailed(c.Status.Conditions, v1alpha1.ConditionArchiveStored),
		forget: fmt.Sprintf("kubectl cnmsql backup forget --cluster %s -n %s", c.Name, c.Namespace),
		task:   backupjob.Task{Namespace: c.Namespace, Cluster: c.Name, ClusterUID: string(c.UID)},
		tell: func(ctx context.Context, is metav1.ConditionStatus, reason core.Reason, message string) error {
			return r.tell(ctx, c, is, reason, message)
		}}
	if m.Store != nil {
		m.where = resources.StorePath(m.Store, c.Name)
	}
	return m
}

// endWriters ends who may still write to the archive, and names one that has not ended.
func (r *ReclaimReconciler) endWriters(ctx context.Context, c *v1alpha1.Cluster) (left string, err error) {
	its := client.MatchingLabels{v1alpha1.LabelCluster: c.Name}
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.InNamespace(c.Namespace), its); err != nil {
		return "", err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if !metav1.IsControlledBy(p, c) {
			continue
		}
		left = "the Pod " + p.Name
		if p.DeletionTimestamp != nil {
			continue
		}
		if err := r.Client.Delete(ctx, p, client.Preconditions{UID: &p.UID}); client.IgnoreNotFound(err) != nil {
			return left, err
		}
	}
	merge := resources.ArchiveMerge(c)
	isMerge := func(job *batchv1.Job) bool { return merge.IsOf(job) }
	merging, err := r.remover().endJob(ctx, c.Namespace, merge.Name, isMerge)
	if merging != "" {
		left = "the Job " + merging
	}
	if err != nil {
		return left, err
	}
	job, err := r.endJobs(ctx, c)
	if job != "" {
		left = "the Job " + job
	}
	return left, err
}

// endJobs ends the Jobs of Backups that lie there. A Job goes on after its Backup is complete, and
// it was the Job that said so: it counts, too, whether the Job has ended.
func (r *ReclaimReconciler) endJobs(ctx context.Context, c *v1alpha1.Cluster) (left string, err error) {
	var jobs batchv1.JobList
	if err := r.Live.List(ctx, &jobs, client.InNamespace(c.Namespace),
		client.HasLabels{v1alpha1.LabelBackup}); err != nil {
		return "", err
	}
	backups, err := r.backupsThere(ctx, c)
	for i := range backups {
		b := &backups[i]
		isOpen := func(job batchv1.Job) bool {
			return metav1.IsControlledBy(&job, b) && (b.Status.Phase == v1alpha1.BackupRunning || ended(&job) == "")
		}
		if err != nil || !slices.ContainsFunc(jobs.Items, isOpen) {
			continue
		}
		var job string
		if job, err = r.remover().endTaking(ctx, b); job != "" {
			left = job
		}
	}
	return left, err
}

// backupsThere are the Backups that may lie in the Cluster's archive: by what people call it. Who may write
// there must not go on because the store is called by another address.
func (r *ReclaimReconciler) backupsThere(ctx context.Context, c *v1alpha1.Cluster) (out []v1alpha1.Backup, err error) {
	var all v1alpha1.BackupList
	if err := r.Live.List(ctx, &all, client.InNamespace(c.Namespace)); err != nil {
		return nil, err
	}
	there := resources.StorePath(c.Spec.Backup.ObjectStore, c.Name)
	for _, b := range all.Items {
		if b.Spec.Cluster.Name == c.Name && resources.RecordOf(&b).Path == there {
			out = append(out, b)
		}
	}
	return out, nil
}

// tellBackups tells those whose data went. They stay as they are otherwise, and so do those that lie by the
// same name in another store.
func (r *ReclaimReconciler) tellBackups(ctx context.Context, c *v1alpha1.Cluster) error {
	all, err := r.backupsThere(ctx, c)
	if err != nil {
		return err
	}
	for i := range all {
		b := &all[i]
		if b.Removed() != nil || !resources.IsSameStore(resources.RecordOf(b).Store, c.Spec.Backup.ObjectStore) {
			continue
		}
		before := b.DeepCopy()
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionBackupStored,
			Status: metav1.ConditionFalse, Reason: string(core.ReasonBackupRemoved),
			Message: "its Cluster was deleted, and the archive with it: spec.backup.reclaimPolicy was Delete"})
		if err := r.Client.Status().Patch(ctx, b, ifStill(before)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// tell writes the condition ArchiveStored, and tells it when it changes.
func (r *ReclaimReconciler) tell(
	ctx context.Context, c *v1alpha1.Cluster, is metav1.ConditionStatus, reason core.Reason, message string,
) error {
	now := metav1.Condition{Type: v1alpha1.ConditionArchiveStored, Status: is, Reason: string(reason), Message: message}
	if says(c.Status.Conditions, now) {
		return nil
	}
	before := c.DeepCopy()
	meta.SetStatusCondition(&c.Status.Conditions, now)
	if err := r.Client.Status().Patch(ctx, c, ifStill(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	kind := corev1.EventTypeNormal
	if isFailing(reason) {
		kind = corev1.EventTypeWarning
	}
	r.event(c, kind, reason, message)
	return nil
}

// letGoFreed is letGo once no claim goes with the Cluster that is to stay.
func (r *ReclaimReconciler) letGoFreed(ctx context.Context, m *removal, c *v1alpha1.Cluster) (ctrl.Result, error) {
	if again, err := r.awaitVolumes(ctx, c); err != nil || again > 0 {
		return ctrl.Result{RequeueAfter: again}, err
	}
	return ctrl.Result{}, r.letGo(ctx, m, c)
}

// awaitVolumes is when to look again while claims would be deleted with the Cluster that stay by its spec; 0 when
// there are none. Somebody else frees them, and tells why he cannot.
func (r *ReclaimReconciler) awaitVolumes(ctx context.Context, c *v1alpha1.Cluster) (again time.Duration, err error) {
	if resources.VolumesGo(c) {
		return 0, nil
	}
	var all corev1.PersistentVolumeClaimList
	if err := r.Live.List(ctx, &all, client.InNamespace(c.Namespace)); err != nil {
		return 0, err
	}
	unfreed := resources.Unfreed(c, all.Items)
	if len(unfreed) == 0 {
		return 0, nil
	}
	ctrl.LoggerFrom(ctx).Info("the Cluster is removed when it no longer owns PersistentVolumeClaims that must stay",
		"claims", unfreed)
	return r.pause(c), nil
}

// letGo lets the Cluster go, and the Job with it.
func (r *ReclaimReconciler) letGo(ctx context.Context, m *removal, c *v1alpha1.Cluster) error {
	if err := r.remover().end(ctx, m); err != nil {
		return err
	}
	return client.IgnoreNotFound(r.keep(ctx, c, false))
}

func (r *ReclaimReconciler) event(c *v1alpha1.Cluster, kind string, reason core.Reason, message string) {
	tell.Event(r.Recorder, c, core.Event{Warning: kind == corev1.EventTypeWarning, Reason: reason, Message: message})
}
