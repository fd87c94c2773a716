package backups

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/backup"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/queue"
	"cnmsql.co/internal/tell"
)

// GapReconciler has a Backup made when the archive of a Cluster has got a gap, has begun, or has moved to
// another store: until there is one, nobody can restore what was written since. It has one made, too, when
// all instances run a later series of MySQL than any backup is of.
type GapReconciler struct {
	Client client.Client
	// Live reads from the API server: a cache may not know yet what was made a moment ago.
	Live     client.Reader
	Recorder events.EventRecorder
	Now      func() time.Time

	// refused has why the Backup of a Cluster was refused, by its name, so that it is told once.
	refused sync.Map
}

const (
	// refusedPause is after what time a Backup that was refused is tried again.
	refusedPause = time.Minute
	// namePause is after what time it is looked again where there was a Backup of the name: then the name is another.
	namePause = time.Second
)

// SetupWithManager wakes the GapReconciler for a Cluster and for its Backups.
func (r *GapReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("archivegap").
		For(&v1alpha1.Cluster{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: changesCause})).
		Watches(&v1alpha1.Backup{}, handler.EnqueueRequestsFromMapFunc(clusterOf),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: changesTaken})).
		WithOptions(queue.Unmeasured()).
		Complete(r)
}

// changesCause reports whether the change of a Cluster may change causeOf it, for which all Backups of
// its namespace are looked at.
func changesCause(e event.UpdateEvent) bool {
	return changes(e, func(before, after *v1alpha1.Cluster) bool {
		return archiveOf(before) != archiveOf(after) ||
			!slices.Equal(before.Status.InstanceNames, after.Status.InstanceNames) ||
			!slices.Equal(runningOf(before), runningOf(after))
	})
}

// archiveOf is what a cause has of the archive; what was archived last changes all the time.
func archiveOf(c *v1alpha1.Cluster) (out struct {
	told           bool
	place, missing string
	since          int64
}) {
	if is := c.Status.ContinuousArchiving; is != nil {
		out.told, out.place, out.missing = true, is.Place, is.Missing
		if is.MissingSince != nil {
			out.since = is.MissingSince.UnixNano()
		}
	}
	return out
}

// runningOf are the versions of the instances that report one, in their order.
func runningOf(c *v1alpha1.Cluster) (out []string) {
	for _, in := range c.Status.InstancesReported {
		out = append(out, in.Version)
	}
	return out
}

func clusterOf(_ context.Context, obj client.Object) []reconcile.Request {
	b, is := obj.(*v1alpha1.Backup)
	if !is {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: b.Namespace,
		Name: b.Spec.Cluster.Name}}}
}

// Reconcile looks at one Cluster.
func (r *GapReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c := &v1alpha1.Cluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, c); err != nil || c.DeletionTimestamp != nil {
		r.refused.Delete(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	why := causeOf(c)
	if why == nil {
		r.refused.Delete(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	// The API server is asked only if the cache has a Backup made: a gap is told for long.
	for _, from := range []client.Reader{r.Client, r.Live} {
		all, err := TakenOf(ctx, from, c)
		if err != nil {
			return ctrl.Result{}, err
		}
		if create, wake := why.due(r.Now(), all); !create {
			r.refused.Delete(req.NamespacedName)
			return ctrl.Result{RequeueAfter: wake}, nil
		}
	}
	again, err := r.make(ctx, c, why)
	return ctrl.Result{RequeueAfter: again}, err
}

// cause is why a Backup is made.
type cause struct {
	due func(now time.Time, all []backup.Taken) (create bool, wake time.Duration)
	// infix of the Backup's name, and the reason of the event that tells of it.
	infix  string
	reason core.Reason
	// what is so, what the Backup is for, and what is so without it.
	what, helps, without string
}

// causeOf is why a Backup of a Cluster may have to be made, nil if there is nothing.
func causeOf(c *v1alpha1.Cluster) *cause {
	gap := c.Status.ContinuousArchiving
	if gap == nil || !c.Spec.Backup.Archives() {
		return nil
	}
	if gap.MissingSince != nil {
		return &cause{infix: "gap", reason: core.ReasonGapBackup, what: whatLacks(gap),
			helps:   "from which one can restore what was written since",
			without: "nobody can restore what was written since",
			due: func(now time.Time, all []backup.Taken) (bool, time.Duration) {
				return backup.AfterGap(GapOf(gap), now, all)
			}}
	}
	running := runningOf(c)
	if len(running) != len(c.Status.InstanceNames) || len(running) == 0 {
		return nil
	}
	return &cause{infix: "step", reason: core.ReasonStepBackup,
		what:    "all instances run MySQL " + running[0] + ", and the newest backup is of an older series",
		helps:   "with which a restore to a later moment begins",
		without: "a restore to a later moment begins on a server of the older series",
		due: func(now time.Time, all []backup.Taken) (bool, time.Duration) {
			return backup.AfterStep(running, now, all)
		}}
}

// make makes a Backup. Its name has the moment: who makes it twice in a second makes it once. One that is
// refused is to be tried again after some time. So is one whose name is taken, maybe by another Cluster's: of a long
// name of a Cluster only the beginning is in it.
func (r *GapReconciler) make(ctx context.Context, c *v1alpha1.Cluster, why *cause) (again time.Duration, err error) {
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace,
		Name: madeName(c.Name, why.infix, r.Now())}}
	b.Spec.Cluster.Name = c.Name
	err = r.Client.Create(ctx, b)
	switch {
	case apierrors.IsAlreadyExists(err):
		return namePause, nil
	case isRefused(err):
		r.tellRefused(c, why, strings.ReplaceAll(err.Error(), b.Name, c.Name+"-"+why.infix+"-TIME"))
		return refusedPause, nil
	case err != nil:
		return 0, fmt.Errorf("making the Backup %s of %s: %w", b.Name, c.Name, err)
	}
	r.refused.Delete(client.ObjectKeyFromObject(c))
	tell.Event(r.Recorder, c, core.Event{Reason: why.reason,
		Message: fmt.Sprintf("%s: the Backup %s is made, %s", why.what, b.Name, why.helps)})
	return 0, nil
}

// tellRefused tells once why there is no Backup.
func (r *GapReconciler) tellRefused(c *v1alpha1.Cluster, why *cause, refusal string) {
	if before, _ := r.refused.Swap(client.ObjectKeyFromObject(c), refusal); before == refusal {
		return
	}
	tell.Event(r.Recorder, c, core.Event{Warning: true, Reason: core.ReasonGapBackupRefused, Message: fmt.Sprintf(
		"%s, and %s: the API server refuses the Backup that would help: %s. See the quotas and the "+
			"admission policies of the namespace, or create a Backup yourself; it is tried again each minute",
		why.what, why.without, refusal)})
}

func whatLacks(is *v1alpha1.ContinuousArchivingStatus) string {
	if is.Missing == "" {
		return "the archive has begun in " + is.Place
	}
	return "the archive lacks " + is.Missing
}

// GapOf is the gap that the status tells, which has one. A set of many parts is told in short there: then it
// is not known what is missing.
func GapOf(is *v1alpha1.ContinuousArchivingStatus) backup.Gap {
	gap := backup.Gap{Since: is.MissingSince.Time}
	if set, err := gtid.Parse(is.Missing); err == nil {
		gap.Missing = set
	}
	return gap
}

// madeName has at most 56 characters, as a Backup's name may.
func madeName(cluster, infix string, now time.Time) string {
	end := "-" + infix + "-" + now.UTC().Format("20060102150405")
	return strings.TrimRight(cluster[:min(len(cluster), 56-len(end))], "-") + end
}

// TakenOf is what is known of the Backups of a Cluster that lie where its archive does.
func TakenOf(ctx context.Context, from client.Reader, c *v1alpha1.Cluster) ([]backup.Taken, error) {
	var all v1alpha1.BackupList
	if err := from.List(ctx, &all, client.InNamespace(c.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the Backups of %s: %w", c.Name, err)
	}
	return takenOf(c, all.Items), nil
}

// takenOf is TakenOf of those that are known, of this Cluster and of others.
func takenOf(c *v1alpha1.Cluster, all []v1alpha1.Backup) (out []backup.Taken) {
	for i := range all {
		b := &all[i]
		isIts := b.Namespace == c.Namespace && b.Spec.Cluster.Name == c.Name
		if !isIts || b.DeletionTimestamp != nil || b.Spec.ObjectStore != nil {
			continue
		}
		t := backup.Taken{Created: b.CreationTimestamp.Time, Completed: b.Status.Phase == v1alpha1.BackupCompleted,
			Version: b.Status.ServerVersion}
		if s := b.Status.StartedAt; s != nil {
			t.Started = s.Time
		}
		if s := b.Status.StoppedAt; s != nil && isOver(b) {
			t.Ended = s.Time
		}
		if set, err := gtid.Parse(b.Status.BeginGTID); err == nil && b.Status.BeginGTID != "" {
			t.Holds = &set
		}
		out = append(out, t)
	}
	return out
}

// isGapOpen reports whether nobody can restore what was written since the archive of a Cluster has
// got a gap or has moved. The status has it: who archives now may know nothing of the gap.
func isGapOpen(c *v1alpha1.Cluster, all []v1alpha1.Backup) bool {
	is := c.Status.ContinuousArchiving
	return is != nil && is.MissingSince != nil && !backup.GapClosed(GapOf(is), takenOf(c, all))
}
