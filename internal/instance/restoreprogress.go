package instance

import (
	"fmt"
	"time"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/restore"
)

// restoredFiles reports how far the backup's files are.
func (m *manager) restoredFiles(from *restore.Origin, done, of int64, began time.Time) {
	now := from.Begun()
	now.Files = core.AmountAt(done, of, began, time.Now())
	m.update(func(s *state) { s.restore = now })
}

// replayed reports how far the archive is.
func (m *manager) replayed(from *restore.Origin, plan facts.Plan, p archive.Progress, began time.Time) {
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
	m.update(func(s *state) { s.restore = now })
}

// finishesRestore reports that all is replayed, and the data are made the cluster's own.
func (m *manager) finishesRestore() {
	done := m.record.get().Restored
	if done == nil {
		return
	}
	now := *done
	now.Stage = core.RestoreFinish
	m.update(func(s *state) { s.restore = &now })
}

// rememberOrigin keeps what the data are of, for whoever asks later.
func (m *manager) rememberOrigin(from *restore.Origin, plan facts.Plan) error {
	done := from.Whole(plan)
	done.Stage, done.Reached = core.RestoreDone, plan.Reached
	done.Replay.Done, done.Bytes = done.Replay.Of, done.TotalBytes
	return m.record.change(func(r *volumeRecord) {
		r.RestoredBackup, r.RestoredUntil = from.Base.ID, plan.Reached.UTC().Format(time.RFC3339Nano)
		r.Restored = done
	})
}

// rememberLacking keeps which tables lack rows, beside what the data are of.
func (m *manager) rememberLacking(tables []string) error {
	return m.record.change(func(r *volumeRecord) {
		if r.Restored == nil || len(tables) == 0 {
			return
		}
		done := *r.Restored // others read the one that is volumeRecord
		done.Lacking = tables
		r.Restored = &done
	})
}

// restoreOf is what is reported of a restore: the one that goes on, or that of which the
// data are; the mutex is held.
func (s *state) restoreOf(kept *core.Restore) *core.Restore {
	switch {
	case s.restore != nil:
		return s.restore
	case s.volume.data == core.DataPopulated:
		return kept
	}
	return nil
}
