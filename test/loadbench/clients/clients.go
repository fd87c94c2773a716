// Package clients has clients do transactions as fast as they can, and tells how many they
// did and how long each took. It must not know what server that is.
package clients

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"cnmsql.co/test/loadbench/workload"
)

// Plan is what is to be done.
type Plan struct {
	Server      *mysql.Config
	Workload    workload.Workload
	Connections int
	// Warm is how long they work before anything counts, and Window how long it counts.
	Warm, Window time.Duration
	// Then is called as soon as nobody works any more; it may be nil.
	Then func() error
}

// again is how long a client waits before it connects again.
const again = 20 * time.Millisecond

// Run does it. All connections are made before the first transaction begins.
func (p Plan) Run(ctx context.Context) (*Result, error) {
	connector, err := mysql.NewConnector(p.Server)
	if err != nil {
		return nil, err
	}
	all := make([]*client, p.Connections)
	defer func() {
		for _, c := range all {
			c.close()
		}
	}()
	if err := p.connect(ctx, connector, all); err != nil {
		return nil, err
	}
	begin := time.Now().Add(p.Warm)
	end := begin.Add(p.Window)
	var work sync.WaitGroup
	for _, c := range all {
		work.Go(func() { c.until(ctx, end) })
	}
	work.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if p.Then != nil {
		if err := p.Then(); err != nil {
			return nil, err
		}
	}
	var done []transaction
	for _, c := range all {
		done = append(done, c.done...)
	}
	return judge(done, begin, end)
}

// connect makes all clients, at the same time.
func (p Plan) connect(ctx context.Context, connector driver.Connector, all []*client) error {
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	for i := range all {
		all[i] = &client{connector: connector, workload: p.Workload, seed: uint64(i + 1)}
		wg.Go(func() {
			if err := all[i].connect(ctx); err != nil {
				errs[i] = fmt.Errorf("connection %d of %d: %w", i+1, len(all), err)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err // the others would say the same
		}
	}
	return nil
}

// transaction that was tried.
type transaction struct {
	begun, ended time.Time
	err          error
}

type client struct {
	connector driver.Connector
	workload  workload.Workload
	seed      uint64

	conn driver.Conn // nil when it was lost
	at   workload.Client
	done []transaction
}

func (c *client) connect(ctx context.Context) error {
	conn, err := c.connector.Connect(ctx)
	if err != nil {
		return err
	}
	if c.at, err = c.workload.Client(conn, c.seed); err != nil {
		return errors.Join(err, conn.Close())
	}
	c.conn = conn
	return nil
}

func (c *client) close() {
	if c != nil && c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// until does transactions until a moment. One that has begun is awaited; one that failed is
// not begun again. To connect again and fail counts as a transaction that failed.
func (c *client) until(ctx context.Context, end time.Time) {
	for {
		begun := time.Now()
		if !begun.Before(end) || ctx.Err() != nil {
			return
		}
		err := c.try(ctx)
		c.done = append(c.done, transaction{begun, time.Now(), err})
		if c.conn != nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

func (c *client) try(ctx context.Context) error {
	if c.conn == nil {
		if err := c.connect(ctx); err != nil {
			return fmt.Errorf("connecting again: %w", err)
		}
	}
	err := c.at.Transaction()
	if err != nil && (!workload.IsAnswer(err) || c.at.RollBack() != nil) {
		c.close()
	}
	return err
}
