package verify

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backups"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/backup"
	"cnmsql.co/internal/core/verify"
	"cnmsql.co/internal/observation"
)

// facts gathers what is known of a Cluster and of its copy.
func (r *Reconciler) facts(ctx context.Context, c *v1alpha1.Cluster) (verify.Facts, error) {
	kept := r.recall(client.ObjectKeyFromObject(c))
	f := verify.Facts{
		Now: r.Now().UTC().Truncate(time.Second), Cluster: c.Name, Deleted: c.DeletionTimestamp != nil,
		HasStore: c.Spec.Backup != nil && c.Spec.Backup.ObjectStore != nil, HasData: c.Status.EstablishedAt != nil,
		Request: c.Annotations[v1alpha1.AnnotationVerify], Limit: limitOf(c),
		Record: readRecord(c.Status.LastVerification), Trouble: kept.trouble,
	}
	r.sampler(ctx, c, &f)
	var err error
	if !f.Record.Phase.Runs() { // it hinders only the beginning
		if f.BackupRunning, err = backups.Running(ctx, r.Live, c.Namespace, c.Name, ""); err != nil {
			return f, err
		}
	}
	copied := &v1alpha1.Cluster{}
	err = r.Live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: verify.CopyName(c.Name)}, copied)
	switch {
	case apierrors.IsNotFound(err):
		f.Copy.Refused = kept.refused
		if f.Record.Phase.Runs() {
			return f, nil
		}
		f.Copy.Exists, err = r.remains(ctx, c)
		f.Copy.Deleting = f.Copy.Exists
		return f, err
	case err != nil:
		return f, err
	}
	f.Copy = copyOf(c, copied)
	if f.Record.Phase == verify.Checking && !f.Copy.Foreign && !f.Copy.Deleting {
		f.Check = r.ask(ctx, copied, f.Record)
	}
	return f, nil
}

// remains reports whether a volume of the copy is still to go: the next copy would find it. One
// that belongs to no object is not a copy's.
func (r *Reconciler) remains(ctx context.Context, c *v1alpha1.Cluster) (bool, error) {
	var claims corev1.PersistentVolumeClaimList
	err := r.Live.List(ctx, &claims, client.InNamespace(c.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: verify.CopyName(c.Name)})
	return slices.ContainsFunc(claims.Items, func(pvc corev1.PersistentVolumeClaim) bool {
		return pvc.DeletionTimestamp != nil || len(pvc.OwnerReferences) > 0
	}), err
}

func limitOf(c *v1alpha1.Cluster) time.Duration {
	if c.Spec.Backup == nil || c.Spec.Backup.Verify == nil || c.Spec.Backup.Verify.MaxDuration == nil {
		return 0
	}
	return c.Spec.Backup.Verify.MaxDuration.Duration
}

func copyOf(c, copied *v1alpha1.Cluster) verify.Copy {
	s := &copied.Status
	out := verify.Copy{
		Exists: true, Foreign: !metav1.IsControlledBy(copied, c) || copied.Labels[v1alpha1.LabelVerifies] != c.Name,
		Deleting: copied.DeletionTimestamp != nil, UID: string(copied.UID), Created: copied.CreationTimestamp.Time,
		Doing: s.PhaseReason,
	}
	if p := s.Promotion; p != nil && p.WritableSince != nil {
		out.Writable = p.WritableSince.Time
	}
	for _, in := range s.InstancesReported {
		if in.State == string(core.Restoring) && in.Message != "" {
			out.Doing = in.Message
		}
	}
	if s.Restore != nil {
		out.PassedOver = observation.RestoreFrom(s.Restore).PassedOver
	}
	if s.Blocked != nil {
		out.Blocked, out.NotOurs = s.Blocked.Message, s.Blocked.Reason == string(core.InstanceRestoreNotOurs)
	}
	return out
}

// archiveSlack is what the archive may take besides its target.
const archiveSlack = 10 * time.Second

// sampler chooses the instance whose rows are summed up, and has it do so.
func (r *Reconciler) sampler(ctx context.Context, c *v1alpha1.Cluster, f *verify.Facts) {
	if !c.Spec.Backup.Archives() {
		f.NoSampler = "nothing is archived, so that the restored rows are older than those of the Cluster"
		return
	}
	f.ArchiveDelay = c.Spec.Backup.ContinuousArchiving.TargetRPO() + archiveSlack
	donor, no := backup.Donor(backups.Instances(c, r.Lags), backup.Wish{Instances: int(c.Spec.Instances),
		Undecided: observation.IsUndecided(c.Status.GroupReplication), ReplicaOnly: true})
	if no != nil {
		f.NoSampler = "no replica is ready to be compared with"
		return
	}
	f.Sampler = donor.Name
	if f.Record.Phase != verify.TakingSample {
		return
	}
	order := control.CheckOrder{ID: "sample " + orderID(f.Record), Sample: true}
	said, err := r.Instances.Check(ctx, c, donor.Name, order)
	if err != nil {
		f.Sampling.Unreachable = err.Error()
		return
	}
	f.Sampling = verify.Sampling{Asked: true, Done: said.Done && said.Sample != nil, Error: said.Error}
	if said.Sample != nil {
		f.Sampling.Sample = *said.Sample
	}
}

// orderID tells the orders of one verification from those of another.
func orderID(r verify.Record) string { return r.Started.UTC().Format(time.RFC3339) }

// ask orders the check, which changes nothing if it goes on, and hears how far it is.
func (r *Reconciler) ask(ctx context.Context, copied *v1alpha1.Cluster, record verify.Record) verify.Check {
	instance := copied.Status.CurrentPrimary
	if instance == "" {
		return verify.Check{Unreachable: "the Cluster " + copied.Name + " has no primary now"}
	}
	order := control.CheckOrder{ID: orderID(record)}
	if record.Sample != nil {
		for _, s := range record.Sample.Sums {
			order.Sums = append(order.Sums, s.Table)
		}
	}
	said, err := r.Instances.Check(ctx, copied, instance, order)
	if err != nil {
		return verify.Check{Unreachable: err.Error()}
	}
	out := verify.Check{Asked: true, Done: said.Done, Error: said.Error,
		Table: said.Table, Tables: said.Tables, Checked: said.Checked, BackupID: said.BackupID,
		RestoredTo: said.Executed.Within(setLimit), Executed: said.Executed, Sums: said.Sums,
		RestoredToTime: said.RestoredUntil.UTC().Truncate(time.Second)}
	if said.RestoredUntil.IsZero() {
		out.RestoredToTime = time.Time{}
	}
	for _, d := range said.Damaged {
		out.Damaged = append(out.Damaged, verify.Finding{Name: d.Table, Message: d.Message})
	}
	return out
}

// setLimit bounds what a set may take of the Cluster object.
const setLimit = 1024

func readRecord(s *v1alpha1.VerificationStatus) verify.Record {
	if s == nil {
		return verify.Record{}
	}
	out := verify.Record{NotCompared: s.NotCompared,
		Phase: verify.Phase(s.Phase), Reason: core.Reason(s.Reason), Message: s.Message,
		Request: s.Request, Slot: backups.TimeOf(s.ScheduledFor),
		Started: backups.TimeOf(s.StartedAt), Ended: backups.TimeOf(s.EndedAt), Copy: string(s.ClusterUID),
		BackupID:   s.BackupID,
		RestoredTo: s.RestoredTo, RestoredToTime: backups.TimeOf(s.RestoredToTime),
		RestoreTook: time.Duration(s.RestoreSeconds) * time.Second, LastSucceeded: backups.TimeOf(s.LastSucceededAt),
		Tables: int(s.Tables), Checked: int(s.TablesChecked), Compared: int(s.TablesCompared),
	}
	if s.Sample != nil {
		out.Sample, out.SampledAt = &verify.Sample{Executed: s.Sample.Executed}, s.Sample.TakenAt.UTC()
		for _, t := range s.Sample.Tables {
			out.Sample.Sums = append(out.Sample.Sums, verify.Sum{Table: t.Table, Rows: uint64(t.Rows), Sum: t.Sum})
		}
	}
	return out
}

func writeSample(r verify.Record) *v1alpha1.VerificationSample {
	if r.Sample == nil {
		return nil
	}
	out := &v1alpha1.VerificationSample{Executed: r.Sample.Executed, TakenAt: metav1.Time{Time: r.SampledAt}}
	for _, s := range r.Sample.Sums {
		out.Tables = append(out.Tables, v1alpha1.TableSum{Table: s.Table, Rows: int64(s.Rows), Sum: s.Sum})
	}
	return out
}

func writeRecord(s *v1alpha1.ClusterStatus, r verify.Record) {
	if r.Phase == "" {
		return
	}
	s.LastVerification = &v1alpha1.VerificationStatus{NotCompared: r.NotCompared, Sample: writeSample(r),
		Phase: string(r.Phase), Reason: string(r.Reason), Message: r.Message,
		Request: r.Request, ScheduledFor: backups.Stamp(r.Slot),
		StartedAt: backups.Stamp(r.Started), EndedAt: backups.Stamp(r.Ended), ClusterUID: types.UID(r.Copy),
		BackupID:   r.BackupID,
		RestoredTo: r.RestoredTo, RestoredToTime: backups.Stamp(r.RestoredToTime),
		RestoreSeconds:  int64(r.RestoreTook.Round(time.Second) / time.Second),
		LastSucceededAt: backups.Stamp(r.LastSucceeded),
		Tables:          int32(r.Tables), TablesChecked: int32(r.Checked), TablesCompared: int32(r.Compared),
	}
}

// setCondition says what came of a verification that ends now. While the next one runs, the
// condition stays.
func setCondition(c *v1alpha1.Cluster, plan verify.Plan) {
	if len(plan.Events) == 0 || !plan.Record.Phase.HasEnded() {
		return
	}
	cond := metav1.Condition{Type: v1alpha1.ConditionBackupsVerified, Status: metav1.ConditionFalse,
		Reason: string(reasonOf(plan)), Message: plan.Record.Message, ObservedGeneration: c.Generation}
	if plan.Record.Phase == verify.Succeeded {
		cond.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&c.Status.Conditions, cond)
}
