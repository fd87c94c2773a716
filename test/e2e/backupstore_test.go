//go:build e2e

package e2e

import (
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
)

// storeHangs: writes go on, and it is told; what was written meanwhile is archived when the
// store is back.
func (b *backedUp) storeHangs() {
	b.backUp("before-it-hangs", "")
	s := b.completes("before-it-hangs")
	in := &world{t: b.t, ctx: b.ctx, key: types.NamespacedName{Namespace: b.store.Namespace}}
	l := b.startWriting()
	in.signal("s3", "cnmsql", syscall.SIGSTOP)
	goOn := sync.OnceFunc(func() { in.signal("s3", "cnmsql", syscall.SIGCONT) })
	b.t.Cleanup(goOn)
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

// logsPurgedByHand while the store hangs: the archive has a gap, it is told, and a Backup is
// made by itself, which ends it.
func (b *backedUp) logsPurgedByHand() {
	in := &world{t: b.t, ctx: b.ctx, key: types.NamespacedName{Namespace: b.store.Namespace}}
	in.signal("s3", "cnmsql", syscall.SIGSTOP)
	goOn := sync.OnceFunc(func() { in.signal("s3", "cnmsql", syscall.SIGCONT) })
	b.t.Cleanup(goOn)
	primary := b.primary()
	for range 3 { // the log that is being read stays readable
		b.asRoot(primary, "CREATE DATABASE purged")
		b.asRoot(primary, "DROP DATABASE purged")
		b.asRoot(primary, "FLUSH BINARY LOGS")
	}
	b.asRoot(primary, "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 HOUR")
	goOn()
	c := b.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
		cond := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
		return cond != nil && cond.Reason == "ArchiveGap"
	})
	b.t.Log(meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving).Message)
	b.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
	})
	b.says(b.kubectl("-n", b.key.Namespace, "get", "backup"), b.key.Name+"-gap-")
}
