package retention

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// MergeReport is what became of the small parts of an archive.
type MergeReport struct {
	archive.Merged
	// Held is why less was done than could be; "" if all was. Message says more, and what to do.
	Held    core.Reason
	Message string
}

// Merge merges small parts of a cluster's archive, until it is done or ctx ends. Window and
// Minimum do not count. What went wrong is in the report, beside what was done before that: a
// later Merge goes on.
func Merge(ctx context.Context, s store.Store, p Policy) (out MergeReport) {
	r := &run{s: s, p: p, prefix: backup.LogPrefix(p.Cluster)}
	var err error
	if out.Merged, err = r.merge(ctx); err != nil {
		out.Held, out.Message = reasonOf(err, core.MergeFailed), err.Error()
		if why := context.Cause(ctx); why != nil {
			out.Message = why.Error()
		}
		out.Message = strings.ReplaceAll(out.Message, "\n", "; ")
		return out
	}
	if damaged := errors.Join(out.Damaged...); damaged != nil {
		out.Held = facts.PartDamaged
		out.Message = fmt.Sprintf("%d objects of the archive are damaged, and are left as they are: %v; put them back "+
			"from the bucket's versions, or take a new backup", len(out.Damaged), out.Damaged[0])
	}
	return out
}

func (r *run) merge(ctx context.Context) (archive.Merged, error) {
	if err := r.isOurs(ctx); err != nil {
		return archive.Merged{}, err
	}
	if err := r.areOurs(ctx); err != nil {
		return archive.Merged{}, err
	}
	now, err := r.storeTime(ctx)
	if err != nil {
		return archive.Merged{}, err
	}
	if r.p.Now.Before(now) {
		now = r.p.Now
	}
	return archive.Merge(ctx, r.s, r.prefix, now)
}

// storeTime is the latest that is known by the store's clock: of the manifest that was just written, or,
// where none was, of what lies in the archive. While a primary archives, that is some minutes old.
func (r *run) storeTime(ctx context.Context) (at time.Time, err error) {
	if r.p.Written != "" {
		return r.written(ctx)
	}
	for o, err := range r.s.List(ctx, r.prefix) {
		if err != nil {
			return at, r.notListed(err)
		}
		if o.Modified.After(at) {
			at = o.Modified
		}
	}
	return at, nil
}

// written is when the store took the manifest that was written last, by its clock; zero while
// the listing does not have it, and then nothing is old.
func (r *run) written(ctx context.Context) (at time.Time, err error) {
	key := backup.ManifestKey(r.p.Cluster, r.p.Written)
	for o, err := range r.s.List(ctx, key) {
		if err != nil {
			return at, r.notListed(err)
		}
		if o.Key == key {
			at = o.Modified
		}
	}
	return at, nil
}
