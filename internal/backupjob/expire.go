package backupjob

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/retention"
	"cnmsql.co/internal/store"
)

// expireLimit bounds the removal of what has expired. It may have to look at each part of
// the archive; what is left then, the Job of the next backup removes.
const expireLimit = 2 * time.Hour

// mergeLimit bounds the merging of small parts; what is left then, the Job of the next backup merges.
const mergeLimit = time.Hour

// expire removes what has expired, now that there is a newer backup, and tells so. The
// backup is complete, whatever comes of it: a Pod that ends meanwhile is not missed. A policy that was
// lengthened since the Job began holds; one that was shortened does from the next backup on.
func (o Options) expire(ctx context.Context, s store.Store, t Task, tell *teller) {
	now, err := readTask(o.StoreDir)
	if err != nil {
		o.Log.Error("cannot read how long backups are kept; nothing is removed", "error", err)
		return
	}
	keep := t.Retention.and(now.Retention)
	if keep == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, expireLimit)
	defer cancel()
	r := retention.Run(limited, s, retention.Policy{Cluster: t.Cluster, UID: t.ClusterUID, Window: keep.Window,
		Minimum: keep.Minimum, Written: t.ID, Now: time.Now()})
	o.Log.Info("the Job removed what has expired", "backups", r.Backups, "unfinished", r.Unfinished, "parts", r.Parts,
		"since", r.Since, "held", r.Held, "message", r.Message, "unknown", r.Unknown, "names", r.UnknownNames)
	for _, k := range r.Kept {
		o.Log.Info("the Job kept an expired backup", "id", k.ID, "reason", string(k.Why))
	}
	if ctx.Err() != nil {
		return // the Pod is stopped; the next backup's tells
	}
	if err := tell.end(ctx, func(b *v1alpha1.BackupStatus) { b.Retention = retentionOf(r, time.Now()) }); err != nil {
		o.Log.Error("cannot write into the status of the Backup what was removed", "error", err)
	}
}

// merge merges small parts of the archive, and tells so. The backup is complete, whatever comes
// of it: what is left, the Job of the next backup merges.
func (o Options) merge(ctx context.Context, s store.Store, t Task, tell *teller) {
	if !t.Merges {
		return
	}
	limited, cancel := context.WithTimeoutCause(ctx, mergeLimit,
		fmt.Errorf("it was given up after %s; the Job of the next backup goes on", mergeLimit))
	defer cancel()
	m := retention.Merge(limited, s, retention.Policy{Cluster: t.Cluster, UID: t.ClusterUID, Written: t.ID,
		Now: time.Now()})
	if ctx.Err() != nil || m.Bundles == 0 && m.Removed == 0 && m.Held == "" {
		return
	}
	o.Log.Info("the Job merged small parts of the archive", "parts", m.Parts, "bundles", m.Bundles, "summaries",
		m.Summaries, "removed", m.Removed,
		"held", m.Held, "message", m.Message)
	if err := tell.end(ctx, func(b *v1alpha1.BackupStatus) { b.Merging = mergingOf(m) }); err != nil {
		o.Log.Error("cannot write into the status of the Backup what was merged", "error", err)
	}
}

func mergingOf(m retention.MergeReport) *v1alpha1.BackupMerging {
	out := &v1alpha1.BackupMerging{MergedParts: int64(m.Parts), Bundles: int64(m.Bundles),
		RemovedObjects: int64(m.Removed)}
	if m.Held != "" {
		out.Held = &v1alpha1.RetentionHeld{Reason: string(m.Held), Message: m.Message}
	}
	return out
}

func retentionOf(r retention.Report, now time.Time) *v1alpha1.BackupRetention {
	out := &v1alpha1.BackupRetention{RanAt: metav1.Time{Time: now}, RemovedBackups: r.Backups,
		RemovedUnfinished: int32(len(r.Unfinished)), RemovedParts: int64(r.Parts),
		UnknownObjects: int64(r.Unknown), UnknownNames: r.UnknownNames}
	if !r.Since.IsZero() {
		out.KeptSince = since(r.Since)
	}
	if r.Held != "" {
		out.Held = &v1alpha1.RetentionHeld{Reason: string(r.Held), Message: r.Message}
	}
	return out
}
