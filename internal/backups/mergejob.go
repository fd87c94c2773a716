package backups

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/backup"
	"cnmsql.co/internal/queue"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/tell"
)

// MergeReconciler has the small parts of a Cluster's archive merged by a Job of its own, where no Backup
// is taken for long whose Job would do it. What was done last stands in that Job, which stays.
type MergeReconciler struct {
	Client client.Client
	// Live reads from the API server: a cache may not know yet what was made a moment ago.
	Live     client.Reader
	Recorder events.EventRecorder
	// OperatorImage is what Jobs run.
	OperatorImage string
	Now           func() time.Time

	// seen has a *mergeSeen of each Cluster, by its name.
	seen sync.Map
}

// mergeSeen is what is remembered of one Cluster, as long as it is there and this operator runs.
type mergeSeen struct {
	uid types.UID
	// told is why no Job could be made, so that it is told once; empty once one could.
	told string
	// archived is when the archive is known to have been there at the earliest.
	archived time.Time
}

// SetupWithManager wakes the MergeReconciler for a Cluster, its Backups, and its Job.
func (r *MergeReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("archivemerge").
		For(&v1alpha1.Cluster{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: changesMerging})).
		Watches(&v1alpha1.Backup{}, handler.EnqueueRequestsFromMapFunc(clusterOf),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: changesTaken})).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(archiveMergedBy)).
		WithOptions(queue.Unmeasured()).
		Complete(r)
}

// changesMerging reports whether the change of a Cluster may have something merged: who looks lists all
// Backups of its namespace, and the status of a Cluster changes all the time.
func changesMerging(e event.UpdateEvent) bool {
	return changes(e, func(before, after *v1alpha1.Cluster) bool {
		return !maps.Equal(before.Annotations, after.Annotations) || isArchived(before) != isArchived(after)
	})
}

func isArchived(c *v1alpha1.Cluster) bool {
	return c.Status.ContinuousArchiving != nil && c.Status.ContinuousArchiving.LastArchivedTime != nil
}

// changesTaken reports whether the change of a Backup changes what TakenOf says of it.
func changesTaken(e event.UpdateEvent) bool {
	return changes(e, func(before, after *v1alpha1.Backup) bool {
		return before.Status.Phase != after.Status.Phase || !before.Status.StartedAt.Equal(after.Status.StartedAt) ||
			!before.Status.StoppedAt.Equal(after.Status.StoppedAt) ||
			before.Status.BeginGTID != after.Status.BeginGTID ||
			before.Status.ServerVersion != after.Status.ServerVersion
	})
}

// changes reports whether an object has become another one, has another spec, is being deleted, or has
// changed in what is meant.
func changes[T client.Object](e event.UpdateEvent, inWhatIsMeant func(before, after T) bool) bool {
	before, is := e.ObjectOld.(T)
	after, isStill := e.ObjectNew.(T)
	if !is || !isStill {
		return true
	}
	return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
		!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) || inWhatIsMeant(before, after)
}

func archiveMergedBy(_ context.Context, job client.Object) []reconcile.Request {
	name := job.GetLabels()[v1alpha1.LabelCluster]
	if job.GetName() != resources.ArchiveMergeJobName(name) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: job.GetNamespace(), Name: name}}}
}

// seenOf is what is remembered of a Cluster. Nobody else has it meanwhile: a Cluster is looked at by one
// at a time.
func (r *MergeReconciler) seenOf(c *v1alpha1.Cluster) *mergeSeen {
	key := client.ObjectKeyFromObject(c)
	if is, there := r.seen.Load(key); there && is.(*mergeSeen).uid == c.UID {
		return is.(*mergeSeen)
	}
	out := &mergeSeen{uid: c.UID}
	r.seen.Store(key, out)
	return out
}

// archivedSince is when the archive of a Cluster was there at the earliest; zero if nothing is known to
// be archived. The status says when a part was archived last, and since when all is: whichever is
// earlier, or was seen before.
func (r *MergeReconciler) archivedSince(c *v1alpha1.Cluster) time.Time {
	if !isArchived(c) {
		return time.Time{}
	}
	at := c.Status.ContinuousArchiving.LastArchivedTime.Time
	all := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
	if all != nil && all.Status == metav1.ConditionTrue && all.LastTransitionTime.Time.Before(at) {
		at = all.LastTransitionTime.Time
	}
	seen := r.seenOf(c)
	if seen.archived.IsZero() || at.Before(seen.archived) {
		seen.archived = at
	}
	if created := c.CreationTimestamp.Time; seen.archived.Before(created) {
		return created
	}
	return seen.archived
}

// Reconcile looks at one Cluster. The API server is asked only if the cache has something to be done.
func (r *MergeReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	for _, from := range []client.Reader{r.Client, r.Live} {
		c := &v1alpha1.Cluster{}
		err := from.Get(ctx, req.NamespacedName, c)
		if apierrors.IsNotFound(err) {
			r.seen.Delete(req.NamespacedName)
		}
		if err != nil || c.DeletionTimestamp != nil || !c.Spec.Backup.Archives() || c.Spec.Backup.ObjectStore == nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		done, again, err := r.look(ctx, from, c)
		if done || err != nil {
			return ctrl.Result{RequeueAfter: again}, err
		}
	}
	return ctrl.Result{}, nil
}

// look does what is to be done, if it was read from the API server; otherwise it is done when there is
// nothing.
func (r *MergeReconciler) look(ctx context.Context, from client.Reader, c *v1alpha1.Cluster,
) (done bool, again time.Duration, err error) {
	m, isLive := r.merge(c), from == r.Live
	facts, job, err := r.facts(ctx, from, c, m)
	if err != nil {
		return false, 0, err
	}
	if job != nil && !m.IsOf(job) {
		return true, lookAgain, r.refused(c, "the Job "+job.Name+" exists and is not this Cluster's; delete it")
	}
	runs := job != nil && ended(job) == ""
	isTold := job == nil || job.Annotations[v1alpha1.AnnotationTold] != ""
	step, wake := facts.Next(r.Now())
	switch {
	case isTold && step == backup.MergeWaits:
		return true, wake, nil
	case !isLive:
		return false, 0, nil
	case runs: // its Secret may be that of the Job before it, and go with that
		again, err = r.remover().goesOn(ctx, m, job)
		return true, again, err
	case !isTold:
		return true, 0, r.tellEnd(ctx, c, m, job) // which wakes this again
	case step == backup.MergeClears:
		return true, lookAgain, r.remover().drop(ctx, job, metav1.DeletePropagationBackground)
	}
	again, err = r.begin(ctx, c, m)
	return true, again, err
}

// begin has the Job made. Once it is, what kept it from being made is told again when it comes back.
func (r *MergeReconciler) begin(ctx context.Context, c *v1alpha1.Cluster, m *removal) (time.Duration, error) {
	isRefused := false
	m.fails = func(_ context.Context, why string) error {
		isRefused = true
		return r.refused(c, why)
	}
	again, err := r.remover().begin(ctx, m, nil)
	switch {
	case apierrors.IsAlreadyExists(err):
		return lookAgain, nil
	case err == nil && !isRefused:
		r.seenOf(c).told = ""
	}
	return again, err
}

func (r *MergeReconciler) remover() *remover {
	return &remover{client: r.Client, live: r.Live, image: r.OperatorImage, now: r.Now}
}

// facts are what decides, and the Job that is there; nil if none is.
func (r *MergeReconciler) facts(ctx context.Context, from client.Reader, c *v1alpha1.Cluster, m *removal,
) (backup.Merging, *batchv1.Job, error) {
	out := backup.Merging{Since: r.archivedSince(c), RPO: c.Spec.Backup.ContinuousArchiving.TargetRPO()}
	var err error
	if out.Taken, err = TakenOf(ctx, from, c); err != nil {
		return out, nil, err
	}
	job := &batchv1.Job{}
	err = from.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: m.Name}, job)
	if err != nil {
		return out, nil, client.IgnoreNotFound(err)
	}
	out.Job = &backup.MergeJob{}
	for _, how := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if is := conditionOf(job, how); is != nil {
			out.Job.Ended, out.Job.Failed = is.LastTransitionTime.Time, how == batchv1.JobFailed
		}
	}
	return out, job, nil
}

// merge is what the Job is to do.
func (r *MergeReconciler) merge(c *v1alpha1.Cluster) *removal {
	return &removal{Removal: resources.ArchiveMerge(c), object: c, kind: "Cluster",
		where: resources.StorePath(c.Spec.Backup.ObjectStore, c.Name),
		task:  backupjob.Task{Namespace: c.Namespace, Cluster: c.Name, ClusterUID: string(c.UID)},
		fails: func(_ context.Context, why string) error { return r.refused(c, why) }}
}

// tellEnd tells what came of a Job that has ended, and writes down that it was told.
func (r *MergeReconciler) tellEnd(ctx context.Context, c *v1alpha1.Cluster, m *removal, job *batchv1.Job) error {
	e := core.Event{Reason: core.ReasonMerged, Message: fmt.Sprintf("%s: small parts were merged by the Job %s, as no "+
		"Backup was taken for long; its log says how many", m.where, job.Name)}
	if failed := conditionOf(job, batchv1.JobFailed); failed != nil {
		why, err := r.remover().lastWords(ctx, job)
		if err != nil {
			return err
		}
		e = core.Event{Warning: true, Reason: core.ReasonNotMerged, Message: fmt.Sprintf("%s: the Job %s, which "+
			"merges small parts, failed (%s): %s. It is tried again", m.where, job.Name, failed.Message, why)}
	}
	tell.Event(r.Recorder, c, e)
	before := job.DeepCopy()
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, v1alpha1.AnnotationTold, string(e.Reason))
	return client.IgnoreNotFound(r.Client.Patch(ctx, job, ifStill(before)))
}

// refused tells why there is no Job, once.
func (r *MergeReconciler) refused(c *v1alpha1.Cluster, why string) error {
	message := "small parts of the archive are not merged: " + why + ". It is tried again"
	if seen := r.seenOf(c); seen.told != message {
		seen.told = message
		tell.Event(r.Recorder, c, core.Event{Warning: true, Reason: core.ReasonNotMerged, Message: message})
	}
	return nil
}
