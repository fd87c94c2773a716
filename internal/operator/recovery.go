package operator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backups"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/resources"
)

// recovery keeps the Secret by which the first instance of a Cluster finds the backup that
// it restores, or the server that it copies. Once there are data, and no instance follows the server, nobody needs it,
// and it goes.
func (p *prerequisites) recovery(ctx context.Context, c *v1alpha1.Cluster) error {
	if c.Spec.Bootstrap == nil || c.Spec.Bootstrap.Recovery == nil {
		return nil
	}
	if c.Status.EstablishedAt != nil && !c.Status.Promotion.FollowsServer() {
		return p.drop(ctx, c, &corev1.Secret{}, resources.Names(c.Name).RecoverySecret())
	}
	task, files, err := p.beginsWith(ctx, c)
	if missing := backups.AsMissing(err); missing != nil {
		return noRecovery("%s", missing.Error())
	}
	if err != nil {
		return err
	}
	if files[recovery.FileTask], err = task.Encode(); err != nil {
		return err
	}
	return p.apply(ctx, c, resources.RecoverySecret(c, files))
}

// beginsWith is what the Cluster begins with, and the files by which an instance gets at that.
func (p *prerequisites) beginsWith(ctx context.Context, c *v1alpha1.Cluster) (recovery.Task, map[string][]byte, error) {
	if declared.FirstData(&c.Spec) == core.OriginImported {
		server := declared.Source(&c.Spec)
		files, err := resources.ServerFiles(server,
			backups.SecretReader(ctx, p.live, c.Namespace, "spec.externalClusters"))
		return recovery.Task{Server: resources.ServerOf(server)}, files, err
	}
	task, store, err := p.recoverySource(ctx, c)
	if err != nil {
		return task, nil, err
	}
	files, err := resources.StoreFiles(store, backups.SecretReader(ctx, p.live, c.Namespace, "objectStore"))
	if err != nil {
		return task, nil, err
	}
	if err := backups.CheckKey(store, files); err != nil {
		return task, nil, &userError{core.Problem{Reason: core.KeyInvalid, Message: err.Error()}}
	}
	return task, files, nil
}

func noRecovery(format string, args ...any) error {
	return &userError{core.Problem{Reason: core.ProblemRecoverySource, Message: fmt.Sprintf(format, args...)}}
}

// recoverySource is the backup that spec.bootstrap.recovery names, and where it lies.
func (p *prerequisites) recoverySource(ctx context.Context,
	c *v1alpha1.Cluster) (recovery.Task, *v1alpha1.ObjectStoreSpec, error) {
	from, task := c.Spec.Bootstrap.Recovery, recovery.Task{}
	if c.Spec.Backup != nil {
		task.MaxBytesPerSecond = c.Spec.Backup.MaxBytesPerSecond
	}
	target, err := targetOf(from.RecoveryTarget)
	if err != nil {
		return task, nil, noRecovery("%s", err.Error())
	}
	task.Target = target
	if from.Backup == nil {
		source := declared.Source(&c.Spec)
		if source == nil || source.ObjectStore == nil {
			return task, nil, noRecovery("spec.bootstrap.recovery.source is %s, and spec.externalClusters has no "+
				"such name with an objectStore; add it", from.Source)
		}
		task.Cluster, task.BackupID, task.Owner = from.Source, from.BackupID, verifiedUID(c)
		return task, source.ObjectStore, nil
	}
	var b v1alpha1.Backup
	err = p.live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: from.Backup.Name}, &b)
	is := resources.RecordOf(&b)
	switch {
	case apierrors.IsNotFound(err):
		return task, nil, noRecovery(
			"there is no Backup %s in namespace %s, which spec.bootstrap.recovery.backup names; "+
				"create it, or create the Cluster again with recovery.source if only the object store has it",
			from.Backup.Name, c.Namespace)
	case err != nil:
		return task, nil, err
	case b.Status.Phase != v1alpha1.BackupCompleted || is.Store == nil:
		return task, nil, noRecovery("the Backup %s is %s, and only a Completed one can be restored; wait for it, or "+
			"create the Cluster again with another one",
			b.Name, cmp.Or(b.Status.Phase, v1alpha1.BackupPending))
	case b.DeletionTimestamp != nil:
		return task, nil, noRecovery("the Backup %s is being deleted; create the Cluster again with another one "+
			"(kubectl get backups)", b.Name)
	case b.Removed() != nil:
		return task, nil, noRecovery("the Backup %s is not in the store any more: %s; create the Cluster again with "+
			"another one (kubectl get backups)",
			b.Name, b.Removed().Message)
	}
	task.Cluster, task.BackupID = b.Spec.Cluster.Name, is.ID
	return task, is.Store, nil
}

// verifiedUID is the UID of the Cluster whose backups a throw-away Cluster tries; "" for any
// other Cluster, which may begin with whatever it names.
func verifiedUID(c *v1alpha1.Cluster) string {
	of := metav1.GetControllerOf(c)
	if c.Labels[v1alpha1.LabelVerifies] == "" || of == nil || of.Name != c.Labels[v1alpha1.LabelVerifies] {
		return ""
	}
	return string(of.UID)
}

// targetOf reads spec.bootstrap.recovery.recoveryTarget.
func targetOf(t *v1alpha1.RecoveryTarget) (out recovery.Target, err error) {
	if t == nil {
		return out, nil
	}
	out.Immediate, out.GTID, out.Exclusive = t.TargetImmediate != nil && *t.TargetImmediate, t.TargetGTID, t.Exclusive
	if t.TargetTime != "" {
		if out.Time, err = time.Parse(time.RFC3339Nano, t.TargetTime); err != nil {
			return out, fmt.Errorf("spec.bootstrap.recovery.recoveryTarget.targetTime is %q, and not a time as "+
				"2026-11-23T21:04:05.123456Z; create the Cluster again with one", t.TargetTime)
		}
	}
	if _, err := gtid.Parse(t.TargetGTID); err != nil {
		return out, fmt.Errorf("spec.bootstrap.recovery.recoveryTarget.targetGTID: %w; create the Cluster again with "+
			"a set as gtid_executed shows it", err)
	}
	return out, nil
}
