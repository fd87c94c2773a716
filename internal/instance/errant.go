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
	// search looks for transactions in the binary logs.
	search func(errant gtid.Set) (binlog.Span, error)
	log    *slog.Logger
	by     dated

	mu     sync.Mutex
	st     agent.Errant
	wanted *gtid.Set // what the logs are to be read for next
	reads  bool      // whether they are being read
}

// dated is what an errantDater asks of its manager.
type dated interface {
	// retell has the report made again, and the worker look.
	retell()
}

func newErrantDater(m *manager) *errantDater {
	index := m.opt.Dirs.binlogIndex()
	return &errantDater{log: m.log, by: m, search: func(errant gtid.Set) (binlog.Span, error) {
		return binlog.Times(context.Background(), index, errant, errantRead)
	}}
}

// known is what is known of them.
func (e *errantDater) known() agent.Errant {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.st
}

// date looks into the binary logs, beside everything else. They are read once at a time: transactions
// that are added while they are, as by somebody who goes on writing, are looked for afterwards.
func (e *errantDater) date(errant gtid.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.st.Begins(errant) {
		return
	}
	e.wanted = &errant
	if !e.reads {
		e.reads = true
		go e.work()
	}
}

// work reads the logs until nothing more is wanted.
func (e *errantDater) work() {
	for {
		e.mu.Lock()
		wanted := e.wanted
		e.wanted, e.reads = nil, wanted != nil
		e.mu.Unlock()
		if wanted == nil {
			return
		}
		e.find(*wanted)
	}
}

// find reads the logs for these transactions, and keeps what it finds.
func (e *errantDater) find(errant gtid.Set) {
	span, err := e.search(errant)
	if err != nil {
		e.log.Warn("cannot read when the transactions that the primary lacks were committed", "error", err)
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
}
