// Package restore finds out what a restore is made of: which backup, and what of the archive is
// to be replayed on it. It writes nothing. The package must not know who asks: an instance, or a
// person without Kubernetes.
package restore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/reason"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// Origin is what data are restored from.
type Origin struct {
	// Base is the backup.
	Base *backup.Manifest
	// Place is where the backup and the archive lie.
	Place archive.Place

	// passed are the newer backups that cannot be the base, and why; tried is what follows of that.
	passed []passedOver
	tried  facts.Tried
	// archived is what lies in Place; what of it leads to target is replayed.
	archived *facts.Archive
	target   facts.Target
	suspects *Suspects
}

// Find finds the backup and what is to be replayed on it, and looks whether a server of a
// version can have it. Nothing is written. Errors are a Reason's of backup, archive, seal or
// store, or a *Refusal of internal/core/archive.
func Find(ctx context.Context, s store.Store, key seal.Key, t recovery.Task, server string) (*Origin, error) {
	return FindAgain(ctx, s, key, t, server, nil)
}

// FindAgain is Find for who has tried before. What was damaged then is read first, and where it still is, it is no
// part of a restore: that needs another backup, or another target.
func FindAgain(ctx context.Context, s store.Store, key seal.Key, t recovery.Task, server string,
	suspects *Suspects) (*Origin, error) {
	if _, err := targetOf(t.Target); err != nil {
		return nil, err
	}
	archived := &facts.Archive{}
	if !t.Target.Immediate { // which needs no archive, whatever became of it
		var err error
		if archived, err = Archived(ctx, s, t.Cluster); err != nil {
			return nil, err
		}
	}
	o := &Origin{Place: archive.NewPlace(s, backup.LogPrefix(t.Cluster), key), archived: archived, suspects: suspects}
	if err := o.Place.Suspect(ctx, archived, suspects.archived()); err != nil {
		return nil, err
	}
	return o.find(ctx, t, server)
}

// Archived is what lies in the store of a cluster's archive.
func Archived(ctx context.Context, s store.Store, cluster string) (*facts.Archive, error) {
	a, err := archive.Load(ctx, s, backup.LogPrefix(cluster))
	if err != nil {
		return nil, fmt.Errorf("reading what is archived of %s: %w", cluster, err)
	}
	return &a, nil
}

// FindIn is Find for who knows already what is archived. Runs in it are expanded where that is needed.
func FindIn(ctx context.Context, s store.Store, key seal.Key, archived *facts.Archive, t recovery.Task,
	server string) (*Origin, error) {
	o := &Origin{Place: archive.NewPlace(s, backup.LogPrefix(t.Cluster), key), archived: archived}
	return o.find(ctx, t, server)
}

func (o *Origin) find(ctx context.Context, t recovery.Task, server string) (_ *Origin, err error) {
	if o.target, err = targetOf(t.Target); err != nil {
		return nil, err
	}
	if err := ownedAsTold(ctx, o.Place.Store, t); err != nil {
		return nil, err
	}
	candidates, err := o.candidates(ctx, t.Cluster, t.BackupID)
	if err != nil {
		return nil, err
	}
	if err := o.choose(ctx, t.Cluster, candidates, server); err != nil {
		return o, o.advised(ctx, t, server, err)
	}
	return o, nil
}

// ownedAsTold refuses what is of a Cluster that had the same name before, where the data have
// to be of one Cluster and no other. What is nobody's has no backup either.
func ownedAsTold(ctx context.Context, s store.Store, t recovery.Task) error {
	if t.Owner == "" {
		return nil
	}
	owner, err := backup.Owner(ctx, s, t.Cluster)
	if errors.Is(err, store.NotFound) || err == nil && owner.UID == t.Owner {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("what lies at %s is of an earlier Cluster of this name, or of another one: its UID is %s, since "+
		"%s, and that of this one is %s: %w", t.Cluster, owner.UID, owner.CreatedAt.Format(time.RFC3339), t.Owner,
		backup.ArchiveTaken)
}

func targetOf(t recovery.Target) (out facts.Target, err error) {
	if out.GTIDs, err = gtid.Parse(t.GTID); err != nil {
		return out, err
	}
	out.Time = t.Time
	switch {
	case t.Immediate:
		out.Kind = facts.Immediate
	case !t.Time.IsZero():
		out.Kind = facts.ToTime
	case t.GTID != "" && t.Exclusive:
		out.Kind = facts.BeforeGTIDs
	case t.GTID != "":
		out.Kind = facts.ToGTIDs
	}
	return out, nil
}

// Plan is what to replay on data that hold a set. What a backup holds exactly, only the
// server tells that runs on it.
func (o *Origin) Plan(ctx context.Context, holds gtid.Set) (facts.Plan, error) {
	return o.Place.Choose(ctx, o.archived, facts.Base{Epoch: o.Base.Epoch, End: holds, Time: o.Base.Point}, o.target)
}

// PlanAgain is Plan by what is archived by now: to write a backup's files may take hours, and who restores to
// the latest wants what was archived meanwhile, too. Where that cannot be replayed (a part is damaged, or
// encrypted to another key), or is less, the plan is that of what Find knew, and passed is why. That the store does
// not answer is no reason to restore less: it is asked again for a while, and then that is the error.
func (o *Origin) PlanAgain(ctx context.Context, holds gtid.Set) (plan facts.Plan, passed, err error) {
	former, no := o.Plan(ctx, holds)
	if o.target.Kind != facts.Latest {
		return former, nil, no
	}
	was := newestEpoch(o.archived)
	for pause := planPause; ; pause *= 2 {
		plan, err = o.planNow(ctx, holds)
		if err == nil || ctx.Err() != nil || isOfArchive(err) || pause > planPauses {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	if err == nil && !plan.Holds(former.Set) && newestEpoch(o.archived) <= was { // and it was no failover that lost it
		err = errLess
	}
	if err == nil || no != nil || ctx.Err() != nil || !isOfArchive(err) {
		return plan, nil, err
	}
	return former, err, nil
}

// A store that does not answer is asked again after 5 s, 10 s, … 80 s: to begin anew costs more.
const planPause, planPauses = 5 * time.Second, 80 * time.Second

// planNow reads what is archived now, and is Plan by that.
func (o *Origin) planNow(ctx context.Context, holds gtid.Set) (plan facts.Plan, err error) {
	o.archived = &facts.Archive{} // one of them fills enough of the memory
	o.Place = archive.NewPlace(o.Place.Store, o.Place.Prefix, o.Place.Key)
	archived, err := archive.Load(ctx, o.Place.Store, o.Place.Prefix)
	if err != nil {
		return plan, fmt.Errorf("reading what was archived while the backup was written: %w", err)
	}
	o.archived = &archived
	if err := o.Place.Suspect(ctx, o.archived, o.suspects.archived()); err != nil {
		return plan, err
	}
	if plan, err = o.Plan(ctx, holds); err != nil {
		return plan, err
	}
	return plan, o.Place.Opens(ctx, plan)
}

// isOfArchive reports whether an error tells what is in the archive, or is missing there, and not how the store is.
func isOfArchive(err error) bool {
	_, refused := errors.AsType[*facts.Refusal](err)
	_, named := errors.AsType[*archive.Reason](err)
	_, ofKey := errors.AsType[*seal.Reason](err)
	return refused || named || ofKey || errors.Is(err, errLess) || errors.Is(err, store.NotFound)
}

var errLess = errors.New("the archive leads less far than it did before")

func newestEpoch(a *facts.Archive) (newest int64) {
	for _, b := range a.Branches {
		newest = max(newest, b.Epoch)
	}
	return newest
}

// Begun is a restore of which nothing is done yet.
func (o *Origin) Begun() *core.Restore {
	return &core.Restore{Backup: o.Base.ID, PassedOver: o.passedOver(), Stage: core.RestoreFiles, Reached: o.Base.Point}
}

// Whole is a restore of which the backup's files are there.
func (o *Origin) Whole(plan facts.Plan) *core.Restore {
	r := o.Begun()
	r.Files, r.Until = core.Amount{Done: o.Base.RawSize, Of: o.Base.RawSize}, plan.Reached
	p := archive.Whole(plan)
	r.Replay.Of, r.TotalBytes = p.Of, p.OfBytes
	return r
}

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
func (o *Origin) mayOlder(err error) bool {
	if no, is := errors.AsType[*facts.Refusal](err); is {
		return no.MayOlder()
	}
	is := func(why error) bool { return errors.Is(err, why) }
	return slices.ContainsFunc(hinders, is) || o.target.Kind == facts.Immediate && slices.ContainsFunc(newer, is)
}

// candidates are the backups that may be the base, the newest first, and among them those
// whose manifest is damaged: nobody is given an older one without a word.
func (o *Origin) candidates(ctx context.Context, cluster, id string) (candidates []backup.Entry, err error) {
	if id != "" {
		return []backup.Entry{{Summary: backup.Summary{ID: id}}}, nil
	}
	all, err := backup.List(ctx, o.Place.Store, cluster)
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
			candidates = append(candidates, e)
		}
	}
	return candidates, nil
}

// choose takes the first of the backups, which are the newest first, from which the target
// can be reached, and leaves a note of those that are passed over.
func (o *Origin) choose(ctx context.Context, cluster string, candidates []backup.Entry, server string) error {
	last := fmt.Errorf("the archive %s has no backup: %w", cluster, backup.BackupUnknown)
	for i, e := range candidates {
		id := e.ID
		if e.Err == nil && o.tried.Skips(e.EndGTID) {
			continue // without reading it once more
		}
		plan, err := o.tryBase(ctx, cluster, id, server)
		if err == nil {
			return o.holdsAll(o.most(ctx, cluster, plan, candidates[i+1:], server))
		}
		p := passedOver{id: id, err: err}
		no, refused := errors.AsType[*facts.Refusal](err)
		goesOn := refused && o.tried.GoesOn(no, o.Base.BeginGTID) || o.mayOlder(err) // it has to be replayed from there
		switch {
		case refused && no.Reason == facts.TargetBeforeBackup:
			p.err = nil // nothing is wrong with it
		case !refused && o.Base != nil:
			p.begin = o.Base.BeginGTID
		}
		if last = err; ctx.Err() != nil || !goesOn {
			break
		}
		o.passed = append(o.passed, p)
	}
	return o.firstOr(last)
}

// most looks, of a restore to the latest, whether a backup that looks older by the clock of its Job surely
// holds more than what the chosen one comes to, and takes that one then.
func (o *Origin) most(ctx context.Context, cluster string, plan facts.Plan, older []backup.Entry,
	server string) facts.Plan {
	if kind := o.target.Kind; kind != facts.Latest && kind != facts.Immediate {
		return plan
	}
	for _, e := range older {
		chosen := o.Base
		comesTo := plan.Set.Union(chosen.EndGTID)
		if e.Err != nil || !facts.HoldsMore(e.BeginGTID, e.Epoch, comesTo, chosen.Epoch) {
			continue
		}
		more, err := o.tryBase(ctx, cluster, e.ID, server)
		if err == nil {
			plan = more
			continue
		}
		o.Base = chosen
		if _, refused := errors.AsType[*facts.Refusal](err); !refused {
			o.passed = append(o.passed, passedOver{e.ID, err, e.BeginGTID})
		}
	}
	return plan
}

// firstOr is the error of the newest backup with which anything is wrong, or that one.
func (o *Origin) firstOr(err error) error {
	for _, p := range o.passed {
		if p.err != nil {
			return p.err
		}
	}
	return err
}

// tryBase looks whether a backup can be the base, before anything is written: whether all is
// there and can be opened, as far as that is known without reading it.
func (o *Origin) tryBase(ctx context.Context, cluster, id, server string) (plan facts.Plan, err error) {
	if o.Base, err = backup.Read(ctx, o.Place.Store, cluster, id); err != nil {
		o.Base = nil
		return plan, err
	}
	if _, err = o.Plan(ctx, o.Base.EndGTID); err != nil {
		return plan, err
	}
	if err := o.Base.Fits(server); err != nil {
		return plan, err
	}
	if err := o.Base.Opens(o.Place.Key); err != nil {
		return plan, err
	}
	if err := backup.Check(ctx, o.Place.Store, o.Base); err != nil {
		return plan, err
	}
	if err := backup.CheckParts(ctx, o.Place.Store, o.Base, o.suspects.ofBackup(id)); err != nil {
		return plan, err
	}
	if plan, err = o.Plan(ctx, o.Base.BeginGTID); err != nil { // what it may lack is archived, too
		return plan, err
	}
	return plan, o.Place.Opens(ctx, plan)
}

// holdsAll refuses, of a restore to the latest, what would silently hold less than a newer
// backup that was passed over: no archive reaches that far.
func (o *Origin) holdsAll(plan facts.Plan) error {
	for _, p := range o.passed {
		if o.target.Kind != facts.Latest || plan.Holds(p.begin) {
			continue
		}
		return fmt.Errorf("backup %s cannot be used, and backup %s with the archive holds less than it: "+
			"to have that, name its backupID: %w", p.id, o.Base.ID, p.err)
	}
	return nil
}

// passedOver are the newer backups that are passed over because something is wrong with them.
func (o *Origin) passedOver() (all []core.PassedOver) {
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
