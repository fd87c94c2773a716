//go:build e2e

package e2e

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"cnmsql.co/api/v1alpha1"
)

// archiveGoes with the Cluster that is deleted; a backup that is being taken ends before, and so
// do the members, which archive.
func (b *backedUp) archiveGoes() {
	b.archivesAll()
	b.backUp("whole", "")
	b.completes("whole")
	if len(b.below("log/*/*")) == 0 || len(b.below("base/*/manifest.json")) == 0 {
		b.t.Error("there is no archive that could go")
	}
	b.kubectl("-n", b.key.Namespace, "patch", "cluster", b.key.Name, "--type=merge", "-p",
		`{"spec":{"backup":{"reclaimPolicy":"Delete","maxBytesPerSecond":10000}}}`)
	b.becomes(10*time.Second, func(c *v1alpha1.Cluster) bool {
		return slices.Contains(c.Finalizers, v1alpha1.FinalizerStoredArchive)
	})
	b.backUp("unfinished", "")
	b.awaits("unfinished", time.Minute, func(s *v1alpha1.BackupStatus) bool {
		return s.Progress != nil && s.Progress.TotalBytes > 0
	})
	begun := time.Now()
	b.kubectl("-n", b.key.Namespace, "delete", "cluster", b.key.Name, "--timeout=2m")
	b.t.Logf("the Cluster and its archive were gone after %s", time.Since(begun))
	if left := append(b.below("*"), b.below("*/*/*")...); len(left) > 0 {
		b.t.Errorf("still in the store: %v", left)
	}
	s := b.awaits("whole", time.Second, func(*v1alpha1.BackupStatus) bool { return true })
	if !meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionBackupStored) {
		b.t.Errorf("a Backup does not say that its data are gone: %+v", s.Conditions)
	}
}
