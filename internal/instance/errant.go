package instance

import (
	"context"
	"log/slog"
	"sync"

	"cnmsql.co/internal/binlog"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// errantRead is how much of the binary logs is read to tell when errant transactions were
// committed. They are mostly in the last one.
const errantRead = 1 << 30

// errantDater tells what transactions are that the primary lacks, and when they were committed: whoever
// has to decide about them asks that first.
type errantDater struct {
	index string // of the binary logs
	log   *slog.Logger
	by    dated

	mu sync.Mutex
	st agent.Errant
}

// dated is what an errantDater asks of its manager.
type dated interface {
	// retell has the report made again, and the worker look.
	retell()
}

func newErrantDater(m *manager) *errantDater {
	return &errantDater{index: m.opt.Dirs.binlogIndex(), log: m.log, by: m}
}

// known is what is known of them.
func (e *errantDater) known() agent.Errant {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.st
}

// date looks into the binary logs, beside everything else.
func (e *errantDater) date(errant gtid.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.st.Begins(errant) {
		return
	}
	go func() {
		span, err := binlog.Times(context.Background(), e.index, errant, errantRead)
		if err != nil {
			e.log.Warn("cannot tell when the transactions that the primary lacks were committed", "error", err)
		}
		if span.Found.IsEmpty() {
			return
		}
		if !span.Maintenance.IsEmpty() {
			e.log.Info("of the transactions that the primary lacks, some are statements of maintenance only, which "+
				"change no data", "transactions", span.Maintenance.String())
		}
		times := core.Times{First: span.First.UTC(), Last: span.Last.UTC(),
			Unknown: errant.Subtract(span.Found).Count()}
		e.mu.Lock()
		e.st.Found(errant, times, span.Statements, span.Maintenance)
		e.mu.Unlock()
		e.by.retell()
	}()
}
