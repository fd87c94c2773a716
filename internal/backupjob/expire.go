package backupjob

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/retention"
	"cnmsql.co/internal/store"
)

// expireLimit bounds the removal of what has expired. It may have to look at each part of
// the archive; what is left then, the Job of the next backup removes.
const expireLimit = 2 * time.Hour

// expire removes what has expired, now that there is a newer backup, and tells so. The
// backup is complete, whatever comes of it: a Pod that ends meanwhile is not missed.
func (o Options) expire(ctx context.Context, s store.Store, t Task, tell *teller) {
	if t.Retention == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, expireLimit)
	defer cancel()
	r := retention.Run(limited, s, retention.Policy{Cluster: t.Cluster, UID: t.ClusterUID, Window: t.Retention.Window,
		Minimum: t.Retention.Minimum, Written: t.ID, Now: time.Now()})
	o.Log.Info("what has expired is removed", "backups", r.Backups, "unfinished", r.Unfinished, "parts", r.Parts,
		"since", r.Since, "held", r.Held, "message", r.Message, "unknown", r.Unknown, "names", r.UnknownNames)
	for _, k := range r.Kept {
		o.Log.Info("a backup is kept", "id", k.ID, "for", string(k.Why))
	}
	if ctx.Err() != nil {
		return // the Pod is stopped; the next backup's tells
	}
	if err := tell.end(ctx, func(b *v1alpha1.BackupStatus) { b.Retention = retentionOf(r, time.Now()) }); err != nil {
		o.Log.Error("what was removed cannot be told", "error", err)
	}
}

func retentionOf(r retention.Report, now time.Time) *v1alpha1.BackupRetention {
	out := &v1alpha1.BackupRetention{RanAt: metav1.Time{Time: now}, RemovedBackups: r.Backups,
		RemovedUnfinished: int32(len(r.Unfinished)), RemovedParts: int64(r.Parts),
		UnknownObjects: int64(r.Unknown), UnknownNames: r.UnknownNames}
	if !r.Since.IsZero() {
		out.KeptSince = &metav1.Time{Time: r.Since}
	}
	if r.Held != "" {
		out.Held = &v1alpha1.RetentionHeld{Reason: string(r.Held), Message: r.Message}
	}
	return out
}
