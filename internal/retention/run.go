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
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// Policy is what to keep of which cluster.
type Policy struct {
	// Cluster is its name in the store, and UID whose archive that has to be.
	Cluster, UID string
	// Window is how far back every moment stays restorable; Minimum is how many backups stay
	// in any case, at least one.
	Window  time.Duration
	Minimum int
	// Written is the ID of the backup that was just written: the store's clock is read from
	// its manifest. "" if none was, which only Merge does without.
	Written string
	// Now is the time by the clock here.
	Now time.Time
}

// Report is what was done.
type Report struct {
	// Backups are the IDs of those that were removed, and Unfinished of what was given up.
	Backups, Unfinished []string
	// Parts of the archive that were removed.
	Parts int
	// Since is the earliest moment that can be restored; zero if there is none.
	Since time.Time
	// Kept are the backups that stay, and why.
	Kept []facts.Kept
	// Held is why nothing, or less than could, was removed; "" if all was. Message says more,
	// and what to do.
	Held    core.Reason
	Message string
	Strangers
}

// Strangers are objects below a cluster's name that nobody knows: how many, and the names of
// the first of them.
type Strangers struct {
	Unknown      int
	UnknownNames []string
}

// shown is how many names of unknown objects are told.
const shown = 5

// Run removes what has expired, until it is done or ctx ends. What went wrong is in the
// report, beside what was removed before that: a later Run goes on.
func Run(ctx context.Context, s store.Store, p Policy) Report {
	r := &run{s: s, p: p, prefix: backup.LogPrefix(p.Cluster)}
	if err := r.all(ctx); err != nil {
		r.hold(reasonOf(err, core.RetentionFailed), err.Error())
	}
	return r.Report
}

// run is one Run.
type run struct {
	Report
	s      store.Store
	p      Policy
	prefix string
}

func (r *run) all(ctx context.Context) error {
	if err := r.isOurs(ctx); err != nil {
		return err
	}
	h, err := r.look(ctx)
	if err != nil {
		return err
	}
	e, err := archive.NewPlace(r.s, r.prefix, seal.Key{}).Expire(ctx, &h)
	if err != nil {
		return err
	}
	r.Since, r.Kept = e.Since, append(r.Kept, e.Kept...)
	r.hold(e.Held, adviceOf(e.Held))
	if all := h.Archive.Unreadable; len(all) > 0 && e.Held == all[0].Reason {
		r.Message = fmt.Sprintf("nothing is removed, because %d objects of the archive cannot be read, and what "+
			"they hold may be needed: %s",
			len(all), all[0].Message)
	}
	if len(e.Bases)+len(e.Parts) > 0 {
		if err := r.isWhole(ctx, e.Anchor); err != nil {
			return err
		}
	}
	if err := r.remove(ctx, e); err != nil {
		return err
	}
	r.Strangers, err = r.strangers(ctx)
	return err
}

// isOurs looks whose archive it is, before anything else is done.
func (r *run) isOurs(ctx context.Context) error {
	owner, err := backup.Owner(ctx, r.s, r.p.Cluster)
	if err == nil && owner.UID != r.p.UID {
		err = foreign("the archive "+r.p.Cluster, owner.UID)
	}
	return err
}

func foreign(what, uid string) error {
	return fmt.Errorf("%s is of a Cluster with UID %s; nothing is removed: %w", what, uid, backup.ArchiveTaken)
}

// look reads what is kept. What cannot be read now, for whatever reason, is waited for:
// without it, something else might be taken for the oldest that is needed.
func (r *run) look(ctx context.Context) (facts.Holdings, error) {
	h := facts.Holdings{Window: r.p.Window, Minimum: r.p.Minimum, Local: r.p.Now}
	all, err := backup.List(ctx, r.s, r.p.Cluster)
	if err != nil {
		return h, err
	}
	for _, e := range all {
		switch {
		case errors.Is(e.Err, backup.BackupUnfinished) && e.Listed:
			// It was a backup a moment ago, and somebody removes it: what is left of it is for the next run.
		case errors.Is(e.Err, backup.BackupUnfinished):
			h.Unfinished = append(h.Unfinished, facts.Unfinished{ID: e.ID, Modified: e.Modified})
		case errors.Is(e.Err, backup.ManifestDamaged), errors.Is(e.Err, backup.FormatUnknown):
			r.Kept = append(r.Kept, facts.Kept{ID: e.ID, Why: facts.KeepsUnreadable})
		case e.Err != nil:
			return h, e.Err
		case e.Cluster.UID != r.p.UID:
			return h, foreign("backup "+e.ID, e.Cluster.UID)
		default:
			h.Bases = append(h.Bases, facts.Stored{ID: e.ID, Epoch: e.Epoch, Begin: e.BeginGTID, End: e.EndGTID,
				Point: e.Point, Ended: e.End, Written: e.Written})
			if e.ID == r.p.Written {
				h.Store = e.Written
			}
		}
	}
	h.Archive, err = archive.Load(ctx, r.s, r.prefix)
	if err != nil {
		return h, fmt.Errorf("reading what is archived of %s: %w", r.p.Cluster, err)
	}
	return h, r.foreignBranch(h.Archive.Branches)
}

// foreignBranch refuses branches of another cluster.
func (r *run) foreignBranch(all []facts.Branch) error {
	for _, b := range all {
		if b.Cluster != r.p.UID {
			return foreign(fmt.Sprintf("epoch %d of the archive", b.Epoch), b.Cluster)
		}
	}
	return nil
}

// isWhole looks whether the backup is whole on which the window will rest.
func (r *run) isWhole(ctx context.Context, anchor string) error {
	m, err := backup.Read(ctx, r.s, r.p.Cluster, anchor)
	if err == nil {
		err = backup.Check(ctx, r.s, m)
	}
	damages := []error{backup.PartMissing, backup.PartDamaged, backup.ManifestDamaged, backup.BackupUnknown}
	for _, damage := range damages {
		if errors.Is(err, damage) {
			return because(core.RetentionAnchorDamaged,
				"backup %s, with which the window would begin, is not whole (%v): nothing is removed; "+
					"put back what is missing, or remove that backup, its manifest first", anchor, err)
		}
	}
	return err
}

// remove removes backups, the oldest first, and then parts of the archive, which none needs that is
// there. What was given up is nobody's and goes last: it may be much, and the time may end before.
func (r *run) remove(ctx context.Context, e facts.Expiry) (err error) {
	for _, id := range e.Bases {
		if err := backup.Remove(ctx, r.s, r.p.Cluster, id); err != nil {
			return err
		}
		r.Backups = append(r.Backups, id)
	}
	if r.Parts, err = archive.Remove(ctx, r.s, r.prefix, e.Parts); err != nil {
		return err
	}
	for _, id := range e.Unfinished {
		if err := backup.RemoveUnfinished(ctx, r.s, r.p.Cluster, id); err != nil {
			return err
		}
		r.Unfinished = append(r.Unfinished, id)
	}
	return nil
}

// strangers counts what nobody knows.
func (r *run) strangers(ctx context.Context) (out Strangers, err error) {
	for o, err := range r.s.List(ctx, r.p.Cluster+"/") {
		if err != nil {
			return out, r.notListed(err)
		}
		if r.isKnown(o.Key) {
			continue
		}
		if out.Unknown++; len(out.UnknownNames) < shown {
			out.UnknownNames = append(out.UnknownNames, strings.TrimPrefix(o.Key, r.p.Cluster+"/"))
		}
	}
	return out, nil
}

// isKnown reports whether a backup or an archive has such an object.
func (r *run) isKnown(key string) bool {
	return backup.Known(r.p.Cluster, key) || archive.Known(r.prefix, key)
}

func (r *run) notListed(err error) error {
	return fmt.Errorf("listing what lies below %s: %w", r.p.Cluster, err)
}

func (r *run) hold(why core.Reason, message string) { r.Held, r.Message = why, message }
