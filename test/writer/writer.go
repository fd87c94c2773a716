package writer

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Writer writes from Start to Stop. Its methods may be called from several goroutines at once.
type Writer struct {
	config  Config
	record  *record
	workers sync.WaitGroup
	cancel  context.CancelFunc
}

// ErrStopped says that the writer was stopped before what was waited for happened.
var ErrStopped = errors.New("writer: stopped")

// ErrNotStarted says that the writer was asked about a run that has not begun.
var ErrNotStarted = errors.New("writer: not started")

// New prepares a writer; it does nothing before Start.
func New(c Config) *Writer { return &Writer{config: c.withDefaults()} }

// Run is what tells this writer's rows from others'.
func (w *Writer) Run() string { return w.config.Run }

// Start finds or creates the table and begins to write. It returns when the table is there, and
// the writing goes on until Stop or the end of ctx. A writer is started once.
func (w *Writer) Start(ctx context.Context) error {
	if err := w.config.validate(); err != nil {
		return err
	}
	server, err := newServer(w.config)
	if err != nil {
		return err
	}
	prepare, cancel := context.WithTimeout(ctx, w.config.StartTimeout)
	defer cancel()
	if err := server.prepareTable(prepare); err != nil {
		return err
	}
	w.begin(ctx, server)
	return nil
}

func (w *Writer) begin(ctx context.Context, e endpoint) {
	ctx, w.cancel = context.WithCancel(ctx)
	w.record = newRecord(w.config.Connections)
	for i := range w.config.Connections {
		k := &worker{connection: i, config: w.config, endpoint: e, record: w.record}
		w.workers.Go(func() { k.run(ctx) })
	}
	go func() {
		<-ctx.Done()
		w.record.stop()
		w.workers.Wait()
		w.record.dismissWaiters()
	}()
}

// Stop lets statements that were sent come to their end (at most IOTimeout) and tells what
// happened. It may be called again, for the same answer.
func (w *Writer) Stop() Report {
	if w.record == nil {
		return Report{}
	}
	w.record.stop()
	w.cancel()
	w.workers.Wait()
	return w.record.report(w.config.Run)
}

// Snapshot tells what has happened so far.
func (w *Writer) Snapshot() Snapshot {
	if w.record == nil {
		return Snapshot{}
	}
	return w.record.snapshot(w.config.Run)
}

// GapSince gives the longest gap that ended after t, or has not ended yet. A gap that had begun before t counts whole.
func (w *Writer) GapSince(t time.Time) Gap {
	if w.record == nil {
		return Gap{}
	}
	w.record.mu.Lock()
	defer w.record.mu.Unlock()
	return w.record.gapSince(t.Sub(w.record.started))
}

// WaitAck gives the time of the first acknowledgement of a statement that was sent after the
// given time, which may be in the past. A statement that was on its way by then does not count:
// the server may have had it before whatever happened at that time. To measure from a kill,
// therefore, take the time when the kill has returned.
func (w *Writer) WaitAck(ctx context.Context, after time.Time) (time.Time, error) {
	if w.record == nil {
		return time.Time{}, ErrNotStarted
	}
	waiting := w.record.await(after)
	defer w.record.forget(waiting)
	select {
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case end, found := <-waiting.found:
		if !found {
			return time.Time{}, ErrStopped
		}
		return w.record.started.Add(end), nil
	}
}
