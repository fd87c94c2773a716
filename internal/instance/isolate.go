package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// isolator has a primary isolate itself when nobody stands behind it any more. It keeps when it last
// looked.
type isolator struct {
	log    *slog.Logger
	worker *worker
	by     isolating
	// began is when the manager did.
	began time.Time
	// wake has it look now.
	wake  chan struct{}
	looks pulse
}

// isolating is what an isolator asks of its manager.
type isolating interface {
	facts() *agent.Facts
	// stopWrites returns when mysqld accepts no write any more.
	stopWrites() error
	// server is the mysqld that runs, or ran last; nil if none did.
	server() *process
}

func newIsolator(m *manager, w *worker) *isolator {
	return &isolator{log: m.log, worker: w, by: m, began: m.began, wake: make(chan struct{}, 1)}
}

// isolationSilence is how long keepIsolating may take over one look: a primary that
// isolates itself gives the worker a second and mysqld two, and waits ten for the end of
// one that it killed.
const isolationSilence = 20 * time.Second

// pulse is when a loop was last seen at work.
type pulse struct{ at atomic.Int64 }

func (p *pulse) beat(since time.Time) { p.at.Store(int64(time.Since(since))) }

func (p *pulse) silentFor(since time.Time) time.Duration {
	return time.Since(since) - time.Duration(p.at.Load())
}

// silentFor is how long it has not been looked.
func (i *isolator) silentFor() time.Duration { return i.looks.silentFor(i.began) }

// keepIsolating has this primary isolate itself when nobody stands behind it any more. It does
// not wait for what the worker is busy with. It looks when core/agent says that it may have to, and
// when it is woken: the instance is about to be opened for writes, or its lease may be gone.
func (i *isolator) keepIsolating(ctx context.Context) {
	tick := newTicker(core.IsolationRest)
	defer tick.Stop()
	tick.sooner(core.IsolationLook) // it may have taken another's place, who was open for writes
	i.looks.beat(i.began)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.again()
		case <-i.wake:
		}
		f := i.by.facts()
		must := f.MustIsolateItself()
		i.looks.beat(i.began)
		tick.sooner(f.UntilIsolationLook())
		if !must {
			continue
		}
		i.log.Warn(
			"this primary isolates itself: it could not renew its Lease, and no majority of the instances vouches " +
				"for it")
		if err := i.isolateItself(ctx); err != nil && ctx.Err() == nil {
			i.log.Error("cannot isolate itself", "error", err)
		}
	}
}

func (i *isolator) isolateItself(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, core.IsolationLimit/2)
	defer cancel()
	began := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- i.worker.submit(context.WithoutCancel(ctx), func() error {
			close(began)
			return i.by.stopWrites() // which kills mysqld when it takes too long
		})
	}()
	select {
	case <-began:
		return <-done
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	proc := i.by.server()
	wait, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	return errors.Join(fmt.Errorf("the worker is busy; mysqld is killed"), proc.kill(wait))
}
