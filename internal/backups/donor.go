package backups

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/backup"
	"cnmsql.co/internal/observation"
)

// Lags tells how far an instance is behind the primary, by its own last word.
type Lags func(namespace, instance string) core.Fact[time.Duration]

// chooseDonor chooses whom to back up, by the Cluster's status.
func chooseDonor(c *v1alpha1.Cluster, b *v1alpha1.Backup, lags Lags, waited time.Duration) (backup.Choice, *refusal) {
	s := &c.Status
	if s.EstablishedAt == nil {
		return backup.Choice{}, wait(core.BackupNotYet,
			"the Cluster %s has no data yet; the backup begins when it has", c.Name)
	}
	target := b.Spec.Target
	if d := c.Spec.Backup; d != nil {
		target = cmp.Or(target, d.Target)
	}
	donor, no := backup.Donor(Instances(c, lags), backup.Wish{Primary: target == v1alpha1.TargetPrimary,
		Instances: int(c.Spec.Instances), Undecided: observation.IsUndecided(s.GroupReplication), Waited: waited})
	if no != nil {
		return donor, &refusal{Refusal: *no}
	}
	return donor, nil
}

// Instances are what is known of those of a Cluster, by its status. Of their lag nothing is
// without lags.
func Instances(c *v1alpha1.Cluster, lags Lags) (all []backup.Instance) {
	s := &c.Status
	excluded := slices.Concat(s.FencedInstances, s.DivergedInstances, s.ReplicationBrokenInstances, leftOut(s))
	for _, in := range s.InstancesReported {
		var lag core.Fact[time.Duration]
		if lags != nil {
			lag = lags(c.Namespace, in.Name)
		}
		all = append(all, backup.Instance{
			Lag:      lag,
			Name:     in.Name,
			Primary:  in.Role == v1alpha1.RolePrimary,
			Replica:  in.Role == v1alpha1.RoleReplica,
			Ready:    in.Ready && in.State == string(core.Running),
			Excluded: slices.Contains(excluded, in.Name),
			Stalls:   stalls(s),
			Hangs:    hangs(s),
			Joining:  in.State == string(core.Cloning),
		})
	}
	return all
}

// leftOut are those whom a recovery had the group go on without. One that hears nothing of the
// Cluster goes on as before, and calls itself ready; its history is not the Cluster's.
func leftOut(s *v1alpha1.ClusterStatus) (names []string) {
	if s.GroupReplication == nil {
		return nil
	}
	for _, m := range s.GroupReplication.LeftOut {
		names = append(names, m.Instance)
	}
	return names
}

// stalls reports whether commits may not end on the primary: the conditions of the Cluster say
// that they hang, or do not say that the Cluster is ready.
func stalls(s *v1alpha1.ClusterStatus) bool {
	return !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) || hangs(s)
}

// hangs reports whether commits on the primary are known to wait for replicas.
func hangs(s *v1alpha1.ClusterStatus) bool {
	durable := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDurable)
	return durable != nil && durable.Reason == v1alpha1.ReasonCommitsHang
}
