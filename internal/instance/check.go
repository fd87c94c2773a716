package instance

import (
	"context"
	"fmt"
	"log/slog"
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

// checker has the server check its tables, beside all else that goes on. It keeps how far that is.
type checker struct {
	log *slog.Logger
	by  checked
	// root is the server.
	root func() *mysql.Server
	// ended is closed when the manager ends.
	ended <-chan struct{}

	mu     sync.Mutex
	report control.CheckReport
}

// checked is what a checker asks of its manager.
type checked interface {
	// object is the Cluster; nil before it is known.
	object() *v1alpha1.Cluster
	// writable is the epoch in which the server takes writes; 0 if it does not.
	writable() int64
	// kept is what stands on the volume.
	kept() volumeRecord
}

func newChecker(m *manager) *checker {
	return &checker{log: m.log, by: m, root: func() *mysql.Server { return m.root }, ended: m.ended}
}

func (c *checker) change(f func(*control.CheckReport)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.report)
}

// CheckReport is how far the last check is.
func (c *checker) CheckReport() control.CheckReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.report
	out.Damaged = slices.Clone(out.Damaged)
	return out
}

// StartCheck has the server check all tables, beside all else that goes on. Only an instance
// of a throw-away Cluster does: it reads all data.
func (c *checker) StartCheck(o control.CheckOrder) error {
	cluster := c.by.object()
	switch {
	case o.Sample: // nothing is written, and little read
	case cluster == nil || cluster.Labels[v1alpha1.LabelVerifies] == "":
		return refusal(core.OrderNotAThrowAway,
			"tables are checked in Clusters only that were made to try backups (label %s)",
			v1alpha1.LabelVerifies)
	case c.by.writable() == 0:
		return refusal(core.OrderNotPrimary, "the data are not restored yet: the server takes no writes")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := &c.report
	switch {
	case now.ID == o.ID:
		return nil
	case now.ID != "" && !now.Done && now.Error == "":
		return refusal(core.OrderBusy, "the tables are being checked for another order")
	}
	*now = control.CheckReport{ID: o.ID}
	go c.checkAll(o)
	return nil
}

// checkAll carries out an order, until the manager ends.
func (c *checker) checkAll(o control.CheckOrder) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-c.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	do := c.checkTables
	if o.Sample {
		do = c.sampleTables
	}
	err := do(ctx, o)
	c.change(func(r *control.CheckReport) {
		if r.Table, r.Done = "", err == nil; err != nil {
			r.Error = err.Error()
		}
	})
	c.log.Info("the check of the tables has ended", "error", err)
}

// sampleTables sums up some tables while others write to them.
func (c *checker) sampleTables(ctx context.Context, o control.CheckOrder) error {
	sample, err := tablecheck.TakeSample(ctx, c.root().DB(), o.ID)
	if err == nil {
		c.change(func(r *control.CheckReport) { r.Sample = &sample })
	}
	return err
}

func (c *checker) checkTables(ctx context.Context, o control.CheckOrder) error {
	if err := c.noteRestored(ctx); err != nil {
		return err
	}
	db := c.root().DB()
	all, err := tablecheck.Tables(ctx, db)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("the restored server has no tables, and not its own ones either")
	}
	c.change(func(r *control.CheckReport) { r.Tables = len(all) })
	for _, t := range all {
		c.change(func(r *control.CheckReport) { r.Table = t.String() })
		found, err := tablecheck.Check(ctx, db, t)
		if err != nil && !mysql.IsAnswer(err) {
			return fmt.Errorf(
				"%w: the server may have ended on this table: look for its error log in the logs of the Pod",
				err)
		}
		if err != nil {
			found = &tablecheck.Finding{Table: t, Message: err.Error()}
		}
		c.change(func(r *control.CheckReport) {
			r.Checked++
			if found != nil && len(r.Damaged) < control.MaxListed {
				r.Damaged = append(r.Damaged, control.CheckFinding{Table: t.String(), Message: found.Message})
			}
		})
	}
	sums, err := tablecheck.SumOf(ctx, db, o.Sums)
	c.change(func(r *control.CheckReport) { r.Sums = sums })
	return err
}

// noteRestored says what the data are of.
func (c *checker) noteRestored(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askRestoredLimit)
	defer cancel()
	executed, err := c.root().Executed(ctx)
	if err != nil {
		return fmt.Errorf("asking the restored server what it has executed: %w", err)
	}
	kept := c.by.kept()
	until, err := time.Parse(time.RFC3339Nano, kept.RestoredUntil)
	if err != nil {
		until = time.Time{} // nothing was noted: the data were not restored by this manager's release
	}
	c.change(func(r *control.CheckReport) {
		r.BackupID, r.RestoredUntil, r.Executed = kept.RestoredBackup, until, executed
	})
	return nil
}

// What a checker asks of its manager.

func (m *manager) object() *v1alpha1.Cluster {
	return get(m, func(s *state) *v1alpha1.Cluster { return s.cluster.object })
}

func (m *manager) takesWrites() bool {
	return get(m, func(s *state) bool { return s.mysqld.isWritable() })
}

// writable is the epoch in which this is the primary, whether it takes writes or follows an external server; 0 if
// it is not.
func (m *manager) writable() int64 { return get(m, func(s *state) int64 { return s.mysqld.writable }) }

func (m *manager) kept() volumeRecord { return m.record.get() }
