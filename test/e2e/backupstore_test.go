//go:build e2e

package e2e

import (
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// hangStore stops the store until the function that it returns is called, or the test ends.
func (b *backedUp) hangStore() (goOn func()) {
	b.t.Helper()
	in := &world{t: b.t, ctx: b.ctx, key: types.NamespacedName{Namespace: b.store.Namespace}}
	in.signal("s3", "cnmsql", syscall.SIGSTOP)
	goOn = sync.OnceFunc(func() { in.signal("s3", "cnmsql", syscall.SIGCONT) })
	b.t.Cleanup(goOn)
	return goOn
}

// storeHangs: writes go on, and it is told; what was written meanwhile is archived when the
// store is back.
func (b *backedUp) storeHangs() {
	b.backUp("before-it-hangs", "")
	s := b.completes("before-it-hangs")
	l := b.startWriting()
	goOn := b.hangStore()
	c := b.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
	})
	cond := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
	b.t.Logf("%s: %s", cond.Reason, cond.Message)
	l.ackedAfter(time.Now().Add(time.Second), 10*time.Second)
	goOn()
	b.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
	})
	l.stopAndLoseNothing()
	b.areGood(s)
}

// hasGap reports whether the archive is said to lack what was purged.
func hasGap(c *v1alpha1.Cluster) bool {
	is := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
	return is != nil && is.Reason == string(core.ReasonArchiveGap)
}

// logsPurgedByHand while the store hangs: the archive has a gap, it is told, and a Backup is
// made by itself, which ends it.
func (b *backedUp) logsPurgedByHand() {
	goOn := b.hangStore()
	primary := b.primary()
	for range 3 { // the log that is being read stays readable
		b.asRoot(primary, "CREATE DATABASE purged")
		b.asRoot(primary, "DROP DATABASE purged")
		b.asRoot(primary, "FLUSH BINARY LOGS")
	}
	b.asRoot(primary, "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 HOUR")
	goOn()
	c := b.becomes(2*time.Minute, hasGap)
	b.t.Log(meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving).Message)
	b.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
	})
	b.says(b.kubectl("-n", b.key.Namespace, "get", "backup"), b.key.Name+"-gap-")
}
