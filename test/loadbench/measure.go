package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"

	"cnmsql.co/test/loadbench/clients"
	"cnmsql.co/test/loadbench/throughput"
	"cnmsql.co/test/loadbench/workload"
	"cnmsql.co/test/machine"
)

const (
	// maxConnections is what each server allows, and spare what others need of them: the
	// operator's managers, replicas, and whoever asks how far they are.
	maxConnections = 400
	spare          = 40
	// answer is how long a server may take for one statement.
	answer = time.Minute
	// catchUp is how long replicas may take to execute what was acknowledged.
	catchUp = 10 * time.Minute
)

// order in which durabilities are measured: what is held against each other, one after the other.
var order = []string{throughput.Bare, throughput.Pair, throughput.Trio, throughput.Quorum, "semi-sync", "async",
	"group"}

// place is where a durability is measured.
type place struct {
	primary  *mysql.Config
	replicas []*mysql.Config
	// awaits: commits wait for a replica's acknowledgement by the semi-synchronous plugin. If
	// always, one that did not is an error, and else it is told.
	awaits, always bool
	// same fails if the primary is another than it was; nil where it cannot be.
	same func(context.Context) error
	// end removes it; nil where something else does.
	end func(context.Context) error
}

// measure does all cells. The local Kubernetes is there for all of them, if for any, so that
// what it takes from the machine is taken from all.
func (p *plan) measure(ctx context.Context, own *own, b *book) (err error) {
	var s *stage
	if slices.ContainsFunc(p.durabilities, isOfCluster) {
		if s, err = newStage(ctx, p.options, own.dir); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	}
	for _, durability := range order {
		if !slices.Contains(p.durabilities, durability) {
			continue
		}
		if err := p.under(ctx, durability, own, s, b); err != nil {
			return fmt.Errorf("%s: %w", durability, err)
		}
	}
	return nil
}

func isOfCluster(durability string) bool {
	return durability != throughput.Bare && durability != throughput.Pair && durability != throughput.Trio
}

// under measures one durability, and removes it.
func (p *plan) under(ctx context.Context, durability string, own *own, s *stage, b *book) (err error) {
	say("%s", durability)
	at := &place{}
	switch durability {
	case throughput.Bare:
		err = own.bare(ctx, at)
	case throughput.Pair:
		err = own.replicated(ctx, at, "replica")
	case throughput.Trio:
		err = own.replicated(ctx, at, "replica", "another")
	default:
		err = s.cluster(ctx, durability, at)
	}
	if err != nil {
		return err
	}
	if at.end != nil {
		defer func() { err = errors.Join(err, at.end(context.WithoutCancel(ctx))) }()
	}
	for _, w := range p.kinds {
		if err := p.with(ctx, at, durability, w, b); err != nil {
			return fmt.Errorf("%s: %w", w.Name(), err)
		}
	}
	return nil
}

// with measures one workload, with each count of connections.
func (p *plan) with(ctx context.Context, at *place, durability string, w workload.Workload, b *book) error {
	o, err := at.observe(ctx)
	if err != nil {
		return err
	}
	defer o.close()
	if err := w.Prepare(ctx, o.primary); err != nil {
		return fmt.Errorf("making the table: %w", err)
	}
	if _, err := o.lag(ctx, time.Now()); err != nil {
		return err
	}
	for _, n := range p.counts {
		row, err := p.cell(ctx, at, o, w, n)
		if err != nil {
			return fmt.Errorf("%d connections: %w", n, err)
		}
		row.Durability = durability
		if err := b.add(row); err != nil {
			return err
		}
	}
	return nil
}

// cell measures one row of the table.
func (p *plan) cell(
	ctx context.Context, at *place, o *observer, w workload.Workload, connections int,
) (row throughput.Row, err error) {
	row.Workload, row.Connections = w.Name(), connections
	before, err := o.acks(ctx)
	if err != nil {
		return row, err
	}
	run := clients.Plan{Server: at.primary, Workload: w, Connections: connections, Warm: p.warm, Window: p.window}
	var ended time.Time
	run.Then = func() (err error) {
		ended, row.Load = time.Now(), machine.Load()
		row.Lag, err = o.lag(ctx, ended)
		return err
	}
	r, err := run.Run(ctx)
	if err != nil {
		return row, err
	}
	after, err := o.acks(ctx)
	if err != nil {
		return row, err
	}
	if at.same != nil {
		if err := at.same(ctx); err != nil {
			return row, err
		}
	}
	if row.Lag != nil { // counted from when nobody worked any more, which is a bit later
		*row.Lag = round(*row.Lag+ended.Sub(r.LastAck).Seconds(), 3)
	}
	row.NotAwaited, err = at.notAwaited(before, after)
	row.Transactions, row.Errors = r.Transactions, r.Errors
	row.TPS, row.P50, row.P99 = round(r.TPS(), 1), milliseconds(r.P50), milliseconds(r.P99)
	tell(row, r)
	return row, err
}

func tell(row throughput.Row, r *clients.Result) {
	say("  %s, %d connections: %.1f transactions/s, p50 %.2f ms, p99 %.2f ms",
		row.Workload, row.Connections, row.TPS, row.P50, row.P99)
	if row.Lag != nil {
		say("    the last replica had all of it after %.3f s", *row.Lag)
	}
	if len(r.Kinds) > 0 {
		say("    %d failed, and %d before it counted: %v", r.Errors, r.Before, r.Kinds)
	}
	if row.NotAwaited > 0 {
		say("    %d commits did not wait for a replica", row.NotAwaited)
	}
}

// notAwaited tells how many commits did not wait, of a place where they should.
func (at *place) notAwaited(before, after acks) (int64, error) {
	if !at.awaits {
		return 0, nil
	}
	if after.awaited <= before.awaited {
		return 0, errors.New("no commit has waited for a replica: semi-synchronous replication is not at work")
	}
	n := after.notAwaited - before.notAwaited
	if n > 0 && at.always {
		return n, fmt.Errorf("%d commits did not wait for a replica: the figures would be of another durability", n)
	}
	return n, nil
}

func round(value float64, digits int) float64 {
	unit := math.Pow10(digits)
	return math.Round(value*unit) / unit
}

func milliseconds(d time.Duration) float64 { return round(d.Seconds()*1000, 3) }

// open opens a pool for questions, which may take as long as replicas may.
func open(c *mysql.Config) (*sql.DB, error) {
	c = c.Clone()
	c.InterpolateParams = true
	c.ReadTimeout = catchUp + answer
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(1)
	return db, nil
}
