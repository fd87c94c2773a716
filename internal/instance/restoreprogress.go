package instance

import (
	"fmt"
	"time"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/restore"
)

// writtenFiles tells how far the files are of what the data begin with.
func (r *restorer) writtenFiles(now *core.Restore, done, of int64, began time.Time) {
	r.activities.moves()
	now.Files = core.AmountAt(done, of, began, time.Now())
	r.tell(now)
}

// replayed reports how far the archive is.
func (r *restorer) replayed(from *restore.Origin, plan facts.Plan, p archive.Progress, began time.Time) {
	now := from.Whole(plan)
	now.Stage, now.Replay = core.RestoreReplay, core.AmountAt(p.Transactions, p.Of, began, time.Now())
	now.Bytes, now.TotalBytes = p.Bytes, p.OfBytes
	if p.Part != (facts.Key{}) {
		now.Part = fmt.Sprintf("%d/%d", p.Part.Epoch, p.Part.Sequence)
	}
	if p.Reached.After(plan.Reached) { // of the last part, less may be wanted
		p.Reached = plan.Reached
	}
	if p.Reached.After(now.Reached) {
		now.Reached = p.Reached
	}
	r.tell(now)
}

// finishesRestore reports that all is replayed, and the data are made the cluster's own.
func (r *restorer) finishesRestore() {
	done := r.record().get().Restored
	if done == nil {
		return
	}
	now := *done
	now.Stage = core.RestoreFinish
	r.tell(&now)
}

// rememberOrigin keeps what the data are of, for whoever asks later.
func (r *restorer) rememberOrigin(from *restore.Origin, plan facts.Plan) error {
	done := from.Whole(plan)
	done.Stage, done.Reached = core.RestoreDone, plan.Reached
	done.Replay.Done, done.Bytes = done.Replay.Of, done.TotalBytes
	return r.record().change(func(v *volumeRecord) {
		v.RestoredBackup, v.RestoredUntil = from.Base.ID, plan.Reached.UTC().Format(time.RFC3339Nano)
		v.Restored = done
	})
}

// rememberLacking keeps which tables lack rows, beside what the data are of.
func (r *restorer) rememberLacking(tables []string) error {
	return r.record().change(func(v *volumeRecord) {
		if v.Restored == nil || len(tables) == 0 {
			return
		}
		done := *v.Restored // others read the one that is kept
		done.Lacking = tables
		v.Restored = &done
	})
}

// report is what is reported of a restore: the one that goes on, or that of which the data are, which
// is kept.
func (r *restorer) report(data core.DataState, kept *core.Restore) *core.Restore {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.now != nil:
		return r.now
	case data == core.DataPopulated:
		return kept
	}
	return nil
}
