package instance

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"cnmsql.co/internal/core/agent"
)

// job is something that an order asks the worker to do.
type job struct {
	do   func() error
	done chan error
}

// workerState is what was decided last, and what came of it.
type workerState struct {
	decision agent.Decision
	trouble  *trouble
	// wasFenced: it was fenced when it last was fenced or running.
	wasFenced bool
	waiting   int // orders that wait for the worker
}

// trouble is an action that failed, and when it may be tried again.
type trouble struct {
	actions string
	err     error
	count   int
	retryAt time.Time
}

var errInterrupted = errors.New("interrupted by an order")

// worker is the one that decides and acts: it keeps what was decided last, and what came of it.
type worker struct {
	log      *slog.Logger
	cloner   *cloner
	replacer *replacer
	errant   *errantDater
	by       worked
	// wake has it look now, and ended is closed when the manager has ended.
	wake  chan struct{}
	ended <-chan struct{}
	jobs  chan job

	mu sync.Mutex
	st workerState
	// interrupt ends what it waits for; nil while it waits for nothing.
	interrupt context.CancelFunc
}

// worked is what a worker asks of its manager.
type worked interface {
	facts() *agent.Facts
	// do carries out one action.
	do(ctx context.Context, a agent.Action) error
	// poll asks mysqld how it is.
	poll(ctx context.Context)
	// announceNow has the report made again, and retell has the worker look besides.
	announceNow()
	retell()
}

func newWorker(m *manager, c concerns) *worker {
	return &worker{log: m.log, cloner: c.cloner, replacer: c.replacer, errant: c.errant, by: m,
		wake: m.wake, ended: m.ended, jobs: make(chan job)}
}

// change changes what it keeps, and has that told.
func (w *worker) change(f func()) {
	w.mu.Lock()
	f()
	w.mu.Unlock()
	w.by.retell()
}

// said is what was decided last, and what came of it.
func (w *worker) said() workerState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.st
}

// set is for what was decided elsewhere: by the manager before, or by one that ends.
func (w *worker) set(f func(*workerState)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.st)
}

// work is the one worker: it decides and acts, and does what orders ask.
func (w *worker) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-w.jobs:
			j.done <- j.do()
		case <-w.wake:
		}
		if w.step(ctx) {
			return
		}
		w.replacer.giveWay()
	}
}

// submit has the worker do something next; what the worker waits for is given up.
func (w *worker) submit(ctx context.Context, do func() error) error {
	w.mu.Lock()
	w.st.waiting++
	if w.interrupt != nil {
		w.interrupt()
	}
	w.mu.Unlock()
	j := job{do: do, done: make(chan error, 1)}
	select {
	case w.jobs <- j:
		w.change(func() { w.st.waiting-- })
	case <-ctx.Done():
		w.change(func() { w.st.waiting-- })
		return ctx.Err()
	case <-w.ended:
		return errors.New("the manager has ended")
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// step decides and acts until there is nothing to do, or nothing new. It tells
// whether the manager is to end.
func (w *worker) step(ctx context.Context) (exit bool) {
	before := ""
	for ctx.Err() == nil {
		w.cloner.verifyClone(ctx)
		d := agent.Decide(w.by.facts())
		key := d.Key()
		w.tell(d, key)
		if key == "" || key == before || w.pauses(key) {
			return false
		}
		before = key
		for _, a := range d.Actions {
			if _, last := a.(agent.Exit); last {
				return true
			}
			if err := w.act(ctx, a); err != nil {
				w.noteTrouble(key, a, err)
				return false
			}
		}
		w.change(func() { w.st.trouble = nil })
		w.by.poll(ctx)
	}
	return false
}

// tell publishes a decision. A trouble is over when something else is to be done.
func (w *worker) tell(d agent.Decision, key string) {
	w.mu.Lock()
	if was := w.st.decision; was.State != d.State || was.Reason != d.Reason {
		w.log.Info("this instance has another state", "state", d.State, "reason", d.Reason, "message", d.Message)
	}
	w.st.decision = d
	w.st.wasFenced = d.WasFenced(w.st.wasFenced)
	if t := w.st.trouble; t != nil && t.actions != key {
		w.st.trouble = nil
	}
	w.mu.Unlock()
	w.errant.date(d.Errant)
	w.by.announceNow()
}

func (w *worker) pauses(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.st.trouble
	return t != nil && t.actions == key && time.Now().Before(t.retryAt)
}

// noteTrouble remembers what failed, so that it is reported, and tried again a
// little later each time.
func (w *worker) noteTrouble(key string, a agent.Action, err error) {
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		poke(w.wake)
		return
	}
	w.mu.Lock()
	t := w.st.trouble
	if t == nil || t.actions != key {
		t = &trouble{actions: key}
	}
	next := &trouble{actions: key, err: err, count: t.count + 1}
	next.retryAt = time.Now().Add(agent.RetryAfter(t.count))
	w.st.trouble = next
	w.log.Error("an action failed; the manager tries again", "action", a.String(), "error", err, "attempt", next.count)
	w.mu.Unlock()
	w.by.announceNow()
}

// act carries out one action; an order ends what it waits for.
func (w *worker) act(ctx context.Context, a agent.Action) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	if w.st.waiting > 0 {
		w.mu.Unlock()
		return errInterrupted
	}
	w.interrupt = cancel
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.interrupt = nil
		w.mu.Unlock()
	}()
	level := slog.LevelInfo
	switch a.(type) {
	case agent.WaitApplied, agent.AskPrimary, agent.AskHeld:
		level = slog.LevelDebug
	}
	w.log.Log(ctx, level, "acts", "action", a.String())
	err := w.by.do(ctx, a)
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// What a worker asks of its manager, besides.

func (m *manager) announceNow() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.announce()
}
