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

// errantState is what was found out of transactions that the primary lacks.
type errantState struct {
	of gtid.Set
	// times and some of the statements of these; nil while not known.
	times      *core.Times
	statements []string
	// maintenance are those of all that were looked at which change no data.
	maintenance gtid.Set
}

// dateErrant looks into the binary logs, beside everything else, for what transactions are
// that the primary lacks, and when they were committed: whoever has to decide about them
// asks that first. The mutex is held.
func (m *manager) dateErrant(errant gtid.Set) {
	if errant.IsEmpty() || errant.Equal(m.st.errant.of) {
		return
	}
	m.st.errant.of, m.st.errant.times, m.st.errant.statements = errant, nil, nil
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
		times := &core.Times{First: span.First.UTC(), Last: span.Last.UTC(),
			Unknown: errant.Subtract(span.Found).Count()}
		m.update(func(s *state) {
			if all := s.errant.maintenance.Union(span.Maintenance); all.Count() <= maxAdopted {
				s.errant.maintenance = all
			}
			if s.errant.of.Equal(errant) {
				s.errant.times, s.errant.statements = times, span.Statements
			}
		})
	}()
}

// timesOf returns when errant transactions were committed; nil while that is not known.
func (s *errantState) timesOf(errant gtid.Set) *core.Times {
	if errant.IsEmpty() || !errant.Equal(s.of) {
		return nil
	}
	return s.times
}
