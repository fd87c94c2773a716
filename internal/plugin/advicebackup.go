package plugin

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
)

// isFalse is the condition of a Cluster if it is False; nil otherwise.
func (f *Facts) isFalse(condition string) *metav1.Condition {
	is := meta.FindStatusCondition(f.Cluster.Status.Conditions, condition)
	if is == nil || is.Status != metav1.ConditionFalse || f.Cluster.DeletionTimestamp != nil {
		return nil
	}
	return is
}

// adviseArchive returns how to mend an archive that the condition ContinuousArchiving calls false,
// by its reason. It matters because what is committed while nothing is archived is lost with the
// volumes.
func adviseArchive(f *Facts, r *Report) []string {
	is := f.isFalse(v1alpha1.ConditionContinuousArchiving)
	if is == nil || !f.Cluster.Spec.Backup.Archives() {
		return nil
	}
	take := backupCommandFor(r.Namespace, r.Name)
	what := map[string]string{
		backup.ArchiveTaken.Name: "this path in the object store belongs to another Cluster, perhaps a deleted one " +
			"of this name: give spec.backup.objectStore another path, and take a Backup: " + take,
		string(core.ReasonArchiveMoved): "nothing can be replayed before there is a Backup in the new store; take " +
			"one: " + take,
		string(core.ReasonArchiveGap): "transactions were purged before they were archived, and a Backup is made by " +
			"itself; see that it completes: " + listCommandFor(r),
		string(core.ReasonArchivingBehind): "the archive is further behind than spec.backup asks for; see whether " +
			"anything arrives (lastArchivedTime moves on): kubectl get clusters." + v1alpha1.GroupVersion.Group + " " +
			r.Name + " -n " + r.Namespace + " -o jsonpath='{.status.continuousArchiving}'",
	}[is.Reason]
	return []string{fmt.Sprintf("fix the archive (%s), because what is not archived is lost with the volumes: %s",
		is.Reason, cmp.Or(what, is.Message))}
}

func listCommandFor(r *Report) string {
	return fmt.Sprintf("kubectl cnmsql backup list %s -n %s", r.Name, r.Namespace)
}

// adviseLastBackup returns what to do when the newest Backup failed, because it stays Failed and
// nobody takes another one for it. It does the same when this Cluster has no Backup and an earlier
// Cluster of its name has one.
func adviseLastBackup(f *Facts, r *Report) []string {
	if r.Backups.Earlier != "" {
		return []string{fmt.Sprintf("this Cluster has no Backup: %s is of an earlier Cluster of this name. Give "+
			"spec.backup.objectStore another path, and take one: %s", r.Backups.Earlier,
			backupCommandFor(r.Namespace, r.Name))}
	}
	if len(f.Backups) == 0 {
		return nil
	}
	last := &f.Backups[len(f.Backups)-1]
	if last.Status.Phase != v1alpha1.BackupFailed || last.IsOfEarlier(f.Cluster) {
		return nil
	}
	return []string{fmt.Sprintf("the newest Backup, %s, FAILED (%s); see why, fix that, and take another one: %s; %s",
		last.Name, cmp.Or(last.Status.Reason, "no reason"), listCommandFor(r), backupCommandFor(r.Namespace, r.Name))}
}

// adviseVerified returns what to do when the backups could not be verified, because a backup that
// cannot be restored is none.
func adviseVerified(f *Facts, r *Report) []string {
	is := f.isFalse(v1alpha1.ConditionBackupsVerified)
	if is == nil {
		return nil
	}
	return []string{fmt.Sprintf("the backups could not be verified (%s); see what was found, fix that, and try "+
		"again: %s; kubectl cnmsql backup verify %s -n %s", is.Reason, listCommandFor(r), r.Name, r.Namespace)}
}
