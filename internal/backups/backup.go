package backups

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/backup"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/tell"
)

const (
	// waitLimit is how long a Backup waits for what it needs; for another Backup it
	// waits as long as that one takes.
	waitLimit = time.Hour
	// joinLimit is how long it waits for an instance that is being given its data, which may be terabytes. Behind
	// that, the hour begins.
	joinLimit = 24 * time.Hour
	// lookAgain is when what is waited for is looked at again though nothing woke it.
	lookAgain = 10 * time.Second
)

// Reconciler has each Backup taken once.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache: Secrets of users, and what must not be old.
	Live     client.Reader
	Recorder events.EventRecorder
	// OperatorImage is what Jobs run.
	OperatorImage string
	// Lags tells how far instances are behind; nil where nobody knows.
	Lags Lags
	Now  func() time.Time
}

// Reconcile brings one Backup a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	b := &v1alpha1.Backup{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case b.DeletionTimestamp != nil:
		return r.remove(ctx, b)
	case isOver(b):
		if err := r.tell(ctx, b); err != nil {
			return ctrl.Result{}, err
		}
		again, err := r.renewAfter(ctx, b)
		return ctrl.Result{RequeueAfter: again}, errors.Join(r.expired(ctx, b), r.merged(ctx, b), r.untold(ctx, b), err)
	case b.Status.Phase == v1alpha1.BackupRunning && b.Status.JobName != "":
		return r.follow(ctx, b)
	}
	return r.begin(ctx, b)
}

// isOver reports whether the Backup is completed or failed, so that nothing in it changes any
// more.
func isOver(b *v1alpha1.Backup) bool {
	return b.Status.Phase == v1alpha1.BackupCompleted || b.Status.Phase == v1alpha1.BackupFailed
}

// begin has the Job made, or says what is waited for. What was decided is recorded first. The
// status then says that it runs, and of which instance: another Backup waits.
func (r *Reconciler) begin(ctx context.Context, b *v1alpha1.Backup) (ctrl.Result, error) {
	t, no, err := r.prepare(ctx, b)
	if err != nil {
		return ctrl.Result{}, err
	}
	if no != nil {
		return r.refuse(ctx, b, no)
	}
	if b.Status.Phase != v1alpha1.BackupRunning {
		if err := r.record(ctx, b, t); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.change(ctx, b, func(s *v1alpha1.BackupStatus) { t.note(s, r.Now()) }); err != nil {
			return ctrl.Result{}, err
		}
	}
	if no := r.makeJob(ctx, b, t); no != nil {
		return r.refuse(ctx, b, no)
	}
	if err := r.change(ctx, b, func(s *v1alpha1.BackupStatus) {
		s.JobName, s.Reason, s.Error = resources.BackupJobName(b.Name), "", ""
	}); err != nil {
		return ctrl.Result{}, err
	}
	r.event(b, corev1.EventTypeNormal, core.ReasonBackupStarted, fmt.Sprintf("backup %s of %s is taken from %s",
		b.Status.BackupID, b.Spec.Cluster.Name, b.Status.InstanceName))
	if why := b.Status.InstanceReason; why != "" {
		r.event(b, corev1.EventTypeWarning, core.ReasonPrimaryBackedUp, fmt.Sprintf("the primary %s of %s is backed "+
			"up: %s. Look at the replicas of the Cluster", b.Status.InstanceName, b.Spec.Cluster.Name, why))
	}
	return ctrl.Result{}, nil
}

// waitsSince is since when a Backup has waited for anything else than another Backup; of one that runs
// and has no Job yet, since it was begun.
func waitsSince(b *v1alpha1.Backup, now time.Time) time.Time {
	switch {
	case b.Status.Reason == string(core.BackupOtherRuns):
		return now
	case b.Status.Phase == v1alpha1.BackupRunning && b.Status.StartedAt != nil:
		return b.Status.StartedAt.Time
	case b.Status.QueuedUntil != nil:
		return b.Status.QueuedUntil.Time
	}
	return b.CreationTimestamp.Time
}

// lacksReplica is how long no instance could be backed up at any look at a Backup: what it waited for
// other reasons tells nothing of the replicas.
func lacksReplica(b *v1alpha1.Backup, now time.Time) time.Duration {
	if since := b.Status.NoInstanceSince; since != nil {
		return now.Sub(since.Time)
	}
	return 0
}

// refusal is why a Backup does not begin: it waits, or has failed.
type refusal struct {
	backup.Refusal
	final bool
}

func wait(reason core.Reason, format string, args ...any) *refusal {
	return &refusal{Refusal: backup.Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

func final(reason core.Reason, format string, args ...any) *refusal {
	no := wait(reason, format, args...)
	no.final = true
	return no
}

// limitOf is how long a Backup waits for a reason; 0 is as long as that takes, which is bounded by itself.
func limitOf(why core.Reason) (limit time.Duration, spoken string) {
	switch why {
	case core.BackupOtherRuns:
		return 0, ""
	case core.BackupJoinGoesFirst:
		return joinLimit, "a day"
	}
	return waitLimit, "an hour"
}

// refuse writes down why nothing begins. Nobody waits for ever.
func (r *Reconciler) refuse(ctx context.Context, b *v1alpha1.Backup, no *refusal) (ctrl.Result, error) {
	limit, spoken := limitOf(no.Reason)
	former, _ := limitOf(core.Reason(b.Status.Reason))
	queued := former != waitLimit && limit == waitLimit
	if !queued && !no.final && limit > 0 && r.Now().Sub(waitsSince(b, r.Now())) > limit {
		no = final(core.BackupWaitedTooLong, "it waited for %s: %s. Create another Backup when that has changed",
			spoken, no.Message)
	}
	err := r.change(ctx, b, func(s *v1alpha1.BackupStatus) {
		if queued {
			s.QueuedUntil = &metav1.Time{Time: r.Now()}
		}
		switch {
		case no.Reason != core.BackupNoDonor:
			s.NoInstanceSince = nil
		case s.NoInstanceSince == nil:
			s.NoInstanceSince = &metav1.Time{Time: r.Now()}
		}
		s.Reason, s.Error = string(no.Reason), no.Message
		switch {
		case no.final:
			s.Phase, s.StoppedAt = v1alpha1.BackupFailed, &metav1.Time{Time: r.Now()}
		case s.Phase == "":
			s.Phase = v1alpha1.BackupPending
		}
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if no.final {
		return ctrl.Result{}, r.tell(ctx, b)
	}
	return ctrl.Result{RequeueAfter: lookAgain}, nil
}

// follow looks whether the Job has ended. What came of the backup, the Job writes into the
// status before it ends; one that ended otherwise failed.
func (r *Reconciler) follow(ctx context.Context, b *v1alpha1.Backup) (ctrl.Result, error) {
	job := &batchv1.Job{}
	key := client.ObjectKey{Namespace: b.Namespace, Name: resources.BackupJobName(b.Name)}
	err := r.Client.Get(ctx, key, job)
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, key, job)
	}
	var why string
	switch {
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{}, err
	case err != nil || !metav1.IsControlledBy(job, b):
		why = "the Job " + key.Name + " was deleted before the backup ended"
	default:
		why = ended(job)
	}
	if why == "" {
		return r.goesOn(ctx, b, job)
	}
	// The status that is known here may be older than the Job's last word.
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil || isOver(b) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if b.Status.Error != "" {
		why += "; the last it said: " + b.Status.Error
	}
	return r.refuse(ctx, b, final(core.BackupJobFailed,
		"%s. Look at the logs of its Pods, and create another Backup", why))
}

// goesOn looks whether the Job runs, and says so if it does not. One whose Pod does not run for
// as long as a Backup may wait is ended: others wait for it.
func (r *Reconciler) goesOn(ctx context.Context, b *v1alpha1.Backup, job *batchv1.Job) (ctrl.Result, error) {
	why, err := jobProblemOf(ctx, r.Live, job, r.Now())
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case why == nil && b.Status.Reason == string(core.BackupJobWaits):
		err = r.change(ctx, b, func(s *v1alpha1.BackupStatus) { s.Reason, s.Error = "", "" })
		return ctrl.Result{RequeueAfter: lookAgain}, err
	case why == nil:
		return ctrl.Result{RequeueAfter: renewEvery}, r.renew(ctx, b)
	case r.Now().Sub(why.since) <= waitLimit:
		err = r.change(ctx, b,
			func(s *v1alpha1.BackupStatus) { s.Reason, s.Error = string(core.BackupJobWaits), why.message })
		return ctrl.Result{RequeueAfter: lookAgain}, err
	}
	if err := r.remover().drop(ctx, job, metav1.DeletePropagationForeground); err != nil {
		return ctrl.Result{}, err
	}
	return r.refuse(ctx, b, final(core.BackupWaitedTooLong, "its Job did not run for an hour, and was deleted: %s. "+
		"Create another Backup when that is fixed", why.message))
}

// ended tells how a Job has ended; "" while it goes on.
func ended(job *batchv1.Job) string {
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobFailed:
			return fmt.Sprintf("the Job %s failed: %s", job.Name, c.Message)
		case c.Type == batchv1.JobComplete:
			return fmt.Sprintf("the Job %s ended without reporting a result", job.Name)
		}
	}
	return ""
}

// tell says once how a Backup ended: the condition is missing until then.
func (r *Reconciler) tell(ctx context.Context, b *v1alpha1.Backup) error {
	if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionBackupCompleted); c != nil {
		return nil
	}
	s, kind, reason := &b.Status, corev1.EventTypeNormal, core.ReasonBackupCompleted
	message := fmt.Sprintf("backup %s of %s is complete: %d bytes of data, %d stored at %s", s.BackupID,
		b.Spec.Cluster.Name, s.Size, s.StoredSize, s.DestinationPath)
	condition := metav1.Condition{Type: v1alpha1.ConditionBackupCompleted, Status: metav1.ConditionTrue,
		Reason: v1alpha1.BackupCompleted, Message: message}
	if s.Phase == v1alpha1.BackupFailed {
		kind, reason, message = corev1.EventTypeWarning, core.ReasonBackupFailed,
			fmt.Sprintf("there is no backup: %s: %s", s.Reason, s.Error)
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, s.Reason, s.Error
	}
	if err := r.change(ctx, b, func(s *v1alpha1.BackupStatus) {
		meta.SetStatusCondition(&s.Conditions,
			condition)
	}); err != nil {
		return err
	}
	r.event(b, kind, reason, message)
	return nil
}

// change writes a changed status, if the Backup is still the one that was read. One that did not change is
// not written: who waits looks every ten seconds, and would hold up all others by that.
func (r *Reconciler) change(ctx context.Context, b *v1alpha1.Backup, how func(*v1alpha1.BackupStatus)) error {
	before := b.DeepCopy()
	how(&b.Status)
	if equality.Semantic.DeepEqual(before.Status, b.Status) {
		return nil
	}
	return r.Client.Status().Patch(ctx, b, ifStill(before))
}

func (r *Reconciler) event(b *v1alpha1.Backup, kind string, reason core.Reason, message string) {
	tell.Event(r.Recorder, b, core.Event{Warning: kind == corev1.EventTypeWarning, Reason: reason, Message: message})
}
