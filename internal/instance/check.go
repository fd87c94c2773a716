package instance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/tablecheck"
)

// askRestoredLimit bounds asking the server what it has executed.
const askRestoredLimit = 10 * time.Second

// checking is the last check of the tables.
type checking struct {
	mu     sync.Mutex
	report control.CheckReport
}

func (c *checking) change(f func(*control.CheckReport)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.report)
}

// CheckReport is how far the last check is.
func (m *manager) CheckReport() control.CheckReport {
	m.checking.mu.Lock()
	defer m.checking.mu.Unlock()
	out := m.checking.report
	out.Damaged = slices.Clone(out.Damaged)
	return out
}

// StartCheck has the server check all tables, beside all else that goes on. Only an instance
// of a throw-away Cluster does: it reads all data.
func (m *manager) StartCheck(o control.CheckOrder) error {
	c := get(m, func(s *state) *v1alpha1.Cluster { return s.cluster.object })
	switch {
	case o.Sample: // nothing is written, and little read
	case c == nil || c.Labels[v1alpha1.LabelVerifies] == "":
		return refusal(core.OrderNotAThrowAway,
			"tables are checked in Clusters only that were made to try backups (label %s)",
			v1alpha1.LabelVerifies)
	case get(m, func(s *state) int64 { return s.mysqld.writable }) == 0:
		return refusal(core.OrderNotPrimary, "the data are not restored yet: the server takes no writes")
	}
	m.checking.mu.Lock()
	defer m.checking.mu.Unlock()
	now := &m.checking.report
	switch {
	case now.ID == o.ID:
		return nil
	case now.ID != "" && !now.Done && now.Error == "":
		return refusal(core.OrderBusy, "the tables are being checked for another order")
	}
	*now = control.CheckReport{ID: o.ID}
	go m.checkAll(o)
	return nil
}

// checkAll carries out an order, until the manager ends.
func (m *manager) checkAll(o control.CheckOrder) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-m.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	do := m.checkTables
	if o.Sample {
		do = m.sampleTables
	}
	err := do(ctx, o)
	m.checking.change(func(r *control.CheckReport) {
		if r.Table, r.Done = "", err == nil; err != nil {
			r.Error = err.Error()
		}
	})
	m.log.Info("the tables were checked", "error", err)
}

// sampleTables sums up some tables while others write to them.
func (m *manager) sampleTables(ctx context.Context, o control.CheckOrder) error {
	sample, err := tablecheck.TakeSample(ctx, m.root.DB(), o.ID)
	if err == nil {
		m.checking.change(func(r *control.CheckReport) { r.Sample = &sample })
	}
	return err
}

func (m *manager) checkTables(ctx context.Context, o control.CheckOrder) error {
	if err := m.noteRestored(ctx); err != nil {
		return err
	}
	db := m.root.DB()
	all, err := tablecheck.Tables(ctx, db)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("the restored server has no tables, and not its own ones either")
	}
	m.checking.change(func(r *control.CheckReport) { r.Tables = len(all) })
	for _, t := range all {
		m.checking.change(func(r *control.CheckReport) { r.Table = t.String() })
		found, err := tablecheck.Check(ctx, db, t)
		if err != nil && !mysql.IsAnswer(err) {
			return fmt.Errorf(
				"%w: the server may have ended on this table: look for its error log in the logs of the Pod",
				err)
		}
		if err != nil {
			found = &tablecheck.Finding{Table: t, Message: err.Error()}
		}
		m.checking.change(func(r *control.CheckReport) {
			r.Checked++
			if found != nil && len(r.Damaged) < control.MaxListed {
				r.Damaged = append(r.Damaged, control.CheckFinding{Table: t.String(), Message: found.Message})
			}
		})
	}
	sums, err := tablecheck.SumOf(ctx, db, o.Sums)
	m.checking.change(func(r *control.CheckReport) { r.Sums = sums })
	return err
}

// noteRestored says what the data are of.
func (m *manager) noteRestored(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askRestoredLimit)
	defer cancel()
	executed, err := m.root.Executed(ctx)
	if err != nil {
		return fmt.Errorf("asking the restored server what it has executed: %w", err)
	}
	kept := m.memory.get()
	until, err := time.Parse(time.RFC3339Nano, kept.RestoredUntil)
	if err != nil {
		until = time.Time{} // nothing was noted: the data were not restored by this manager's release
	}
	m.checking.change(func(r *control.CheckReport) {
		r.BackupID, r.RestoredUntil, r.Executed = kept.RestoredBackup, until, executed
	})
	return nil
}
