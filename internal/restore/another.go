package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/recovery"
)

// othersTried is how many other backups are looked at for one that is better than that which is refused.
const othersTried = 16

// adviceLimit is how long that may take: a refusal is told without it, too.
const adviceLimit = 30 * time.Second

// advised is the error of a restore with another backup that works, where it is known: instead of one
// that was named, to the same target; to before what a failover lost, an older one.
func (o *Origin) advised(ctx context.Context, t recovery.Task, server string, err error) error {
	ctx, cancel := context.WithTimeout(ctx, adviceLimit)
	defer cancel()
	no, refused := errors.AsType[*facts.Refusal](err)
	named := o.Base
	defer func() { o.Base = named }()
	switch {
	case refused && no.Reason == facts.TargetLost && no.Nearest.IsZero():
		if id, at := o.beforeLoss(ctx, t, server); id != "" {
			return fmt.Errorf("%w. Backup %s leads to before it: name that one, and the time %s", err, id,
				at.UTC().Format(time.RFC3339Nano))
		}
	case t.BackupID != "" && o.target.Kind != facts.Immediate && (o.mayOlder(err) || refused && no.MayAnother()):
		if id := o.another(ctx, t, server); id != "" {
			return fmt.Errorf("%w. Backup %s leads to the target: name that one, or none", err, id)
		}
	}
	return err
}

// another is the newest backup that leads to the target, besides that which is named; "" if there is none.
func (o *Origin) another(ctx context.Context, t recovery.Task, server string) string {
	for _, id := range o.others(ctx, t) {
		if _, err := o.tryBase(ctx, t.Cluster, id, server); err == nil {
			return id
		}
	}
	return ""
}

// beforeLoss is the newest backup with which something can be restored that is before what a failover
// lost, and the latest such time.
func (o *Origin) beforeLoss(ctx context.Context, t recovery.Task, server string) (id string, at time.Time) {
	for _, id := range o.others(ctx, t) {
		_, err := o.tryBase(ctx, t.Cluster, id, server)
		no, refused := errors.AsType[*facts.Refusal](err)
		if refused && no.Reason == facts.TargetLost && !no.Nearest.IsZero() {
			return id, no.Nearest
		}
	}
	return "", at
}

// others are the newest backups besides that which is named; none if they cannot be listed.
func (o *Origin) others(ctx context.Context, t recovery.Task) (ids []string) {
	all, err := o.candidates(ctx, t.Cluster, "")
	if err != nil {
		return nil
	}
	for _, e := range all {
		if e.ID != t.BackupID && len(ids) < othersTried {
			ids = append(ids, e.ID)
		}
	}
	return ids
}
