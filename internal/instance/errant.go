package instance

import (
	"context"

	"cnmsql.co/internal/binlog"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// errantRead is how much of the binary logs is read to tell when errant transactions were
// committed. They are mostly in the last one.
const errantRead = 1 << 30

// dateErrant looks into the binary logs, beside everything else, for what transactions are
// that the primary lacks, and when they were committed: whoever has to decide about them
// asks that first. The mutex is held.
func (m *manager) dateErrant(errant gtid.Set) {
	if !m.st.errant.Begins(errant) {
		return
	}
	go func() {
		span, err := binlog.Times(context.Background(), m.opt.Dirs.binlogIndex(), errant, errantRead)
		if err != nil {
			m.log.Warn("cannot tell when the transactions that the primary lacks were committed", "error", err)
		}
		if span.Found.IsEmpty() {
			return
		}
		if !span.Maintenance.IsEmpty() {
			m.log.Info("of the transactions that the primary lacks, some are statements of maintenance only, which "+
				"change no data", "transactions", span.Maintenance.String())
		}
		times := core.Times{First: span.First.UTC(), Last: span.Last.UTC(),
			Unknown: errant.Subtract(span.Found).Count()}
		m.update(func(s *state) { s.errant.Found(errant, times, span.Statements, span.Maintenance) })
	}()
}
