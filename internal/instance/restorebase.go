package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/reason"
	"cnmsql.co/internal/seal"
)

// passedOver is a backup that was not taken as the base.
type passedOver struct {
	id  string
	err error
	// begin is what is surely in it; empty if that is not known, or a failover lost of it.
	begin gtid.Set
}

// hinders are the errors of a backup that an older one may not have. What is wrong with the
// store, or with the archive behind all of them, is none.
var hinders = []error{backup.BackupUnknown, backup.ManifestDamaged, backup.FormatUnknown, backup.PartMissing,
	backup.PartDamaged, seal.KeyWrong}

// newer are those of a backup that a newer server has taken. An older server may take an
// older backup, but not what the newer one has logged since.
var newer = []error{backup.SeriesDiffers, backup.ServerOlder}

// mayOlder reports whether an older backup may do what one cannot.
func (o *origin) mayOlder(err error) bool {
	if no, is := errors.AsType[*facts.Refusal](err); is {
		return no.Reason == facts.TargetBeforeBackup || no.Reason == facts.BackupNotOnBranch
	}
	is := func(why error) bool { return errors.Is(err, why) }
	return slices.ContainsFunc(hinders, is) || o.target.Kind == facts.Immediate && slices.ContainsFunc(newer, is)
}

// candidates are the backups that may be the base, the newest first, and among them those
// whose manifest is damaged: nobody is given an older one without a word.
func (o *origin) candidates(ctx context.Context, cluster, id string) (ids []string, err error) {
	if id != "" {
		return []string{id}, nil
	}
	all, err := backup.List(ctx, o.place.Store, cluster)
	if err != nil {
		return nil, err
	}
	since := func(e backup.Entry) time.Time {
		if e.Err != nil {
			return e.Written
		}
		return e.End
	}
	slices.SortStableFunc(all, func(a, b backup.Entry) int { return since(b).Compare(since(a)) })
	for _, e := range all {
		switch {
		case errors.Is(e.Err, backup.BackupUnfinished):
		case e.Err != nil && !o.mayOlder(e.Err):
			return nil, e.Err // that the store does not answer is no reason for an older one
		default:
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}

// choose takes the first of the backups, which are the newest first, from which the target
// can be reached, and leaves a note of those that are passed over.
func (o *origin) choose(ctx context.Context, cluster string, candidates []string, server string) error {
	last := fmt.Errorf("the archive %s has no backup: %w", cluster, backup.BackupUnknown)
	for _, id := range candidates {
		plan, err := o.tryBase(ctx, cluster, id, server)
		if err == nil {
			return o.holdsAll(plan)
		}
		if last = err; ctx.Err() != nil || !o.mayOlder(err) {
			break
		}
		p := passedOver{id: id, err: err}
		if no, is := errors.AsType[*facts.Refusal](err); is && no.Reason == facts.TargetBeforeBackup {
			p.err = nil // nothing is wrong with it
		} else if !is && o.base != nil {
			p.begin = o.base.BeginGTID
		}
		o.passed = append(o.passed, p)
	}
	return o.firstOr(last)
}

// firstOr is the error of the newest backup with which anything is wrong, or that one.
func (o *origin) firstOr(err error) error {
	for _, p := range o.passed {
		if p.err != nil {
			return p.err
		}
	}
	return err
}

// tryBase looks whether a backup can be the base, before anything is written: whether all is
// there and can be opened, as far as that is known without reading it.
func (o *origin) tryBase(ctx context.Context, cluster, id, server string) (plan facts.Plan, err error) {
	if o.base, err = backup.Read(ctx, o.place.Store, cluster, id); err != nil {
		o.base = nil
		return plan, err
	}
	if _, err = o.plan(ctx, o.base.EndGTID); err != nil {
		return plan, err
	}
	if err := o.base.Fits(server); err != nil {
		return plan, err
	}
	if err := o.base.Opens(o.place.Key); err != nil {
		return plan, err
	}
	if err := backup.Check(ctx, o.place.Store, o.base); err != nil {
		return plan, err
	}
	if plan, err = o.plan(ctx, o.base.BeginGTID); err != nil { // what it may lack is archived, too
		return plan, err
	}
	return plan, o.place.Opens(ctx, plan)
}

// holdsAll refuses, of a restore to the latest, what would silently hold less than a newer
// backup that was passed over: no archive reaches that far.
func (o *origin) holdsAll(plan facts.Plan) error {
	for _, p := range o.passed {
		if o.target.Kind != facts.Latest || plan.Holds(p.begin) {
			continue
		}
		return fmt.Errorf("backup %s cannot be used, and backup %s with the archive holds less than it: "+
			"to have that, name its backupID: %w", p.id, o.base.ID, p.err)
	}
	return nil
}

// passedOver are the newer backups that are passed over because something is wrong with them.
func (o *origin) passedOver() (all []core.PassedOver) {
	for _, p := range o.passed {
		if p.err == nil {
			continue
		}
		why := reason.Of(p.err, core.InstanceRestoreFailed)
		if no, is := errors.AsType[*facts.Refusal](p.err); is {
			why = no.Reason
		}
		all = append(all, core.PassedOver{Backup: p.id, Reason: why})
	}
	return all
}
