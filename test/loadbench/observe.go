package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// observer has connections of its own to all servers of a place, made before they are needed.
type observer struct {
	primary  *sql.DB
	replicas []*sql.DB
}

func (at *place) observe(ctx context.Context) (o *observer, err error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	o = &observer{}
	if o.primary, err = open(at.primary); err != nil {
		return nil, err
	}
	err = reach(ctx, o.primary, "OFF")
	for _, r := range at.replicas {
		db, failed := open(r)
		if failed == nil {
			o.replicas = append(o.replicas, db)
			failed = reach(ctx, db, "ON")
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// reach waits until a server answers whose super_read_only is as wished. What Kubernetes
// leads to a Service's address is known there a moment after the cluster is Healthy.
func reach(ctx context.Context, db *sql.DB, readOnly string) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var name, is string
		err := db.QueryRowContext(ctx, "SHOW GLOBAL VARIABLES LIKE 'super_read_only'").Scan(&name, &is)
		if err == nil && is == readOnly {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("no server with super_read_only %s is reached; it is %q", readOnly, is), err)
		case <-tick.C:
		}
	}
}

func (o *observer) close() {
	_ = o.primary.Close()
	for _, r := range o.replicas {
		_ = r.Close()
	}
}

// lag tells how many seconds after a moment the last replica has executed what the primary has
// executed now; nil without replicas. It counts what asking takes, too.
func (o *observer) lag(ctx context.Context, since time.Time) (*float64, error) {
	if len(o.replicas) == 0 {
		return nil, nil
	}
	var executed string
	if err := o.primary.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&executed); err != nil {
		return nil, fmt.Errorf("asking the primary what it has executed: %w", err)
	}
	errs := make([]error, len(o.replicas))
	var wg sync.WaitGroup
	for i, r := range o.replicas {
		wg.Go(func() { errs[i] = await(ctx, r, executed) })
	}
	wg.Wait()
	seconds := time.Since(since).Seconds()
	return &seconds, errors.Join(errs...)
}

// await waits until a replica has executed a set.
func await(ctx context.Context, replica *sql.DB, executed string) error {
	var timedOut int
	const question = "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?)"
	err := replica.QueryRowContext(ctx, question, executed, catchUp.Seconds()).Scan(&timedOut)
	if err != nil {
		return fmt.Errorf("waiting for a replica: %w", err)
	}
	if timedOut != 0 {
		return fmt.Errorf("a replica has not executed %s within %s", executed, catchUp)
	}
	return nil
}

// acks are the commits of a primary, by whether they waited for a replica.
type acks struct{ awaited, notAwaited int64 }

// acks asks the primary. One without semi-synchronous replication has none.
func (o *observer) acks(ctx context.Context) (a acks, err error) {
	for name, into := range map[string]*int64{
		"Rpl_semi_sync_source_yes_tx": &a.awaited, "Rpl_semi_sync_source_no_tx": &a.notAwaited,
	} {
		var text string
		switch err := o.primary.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE '"+name+"'").Scan(&name, &text); {
		case errors.Is(err, sql.ErrNoRows):
			continue
		case err != nil:
			return a, fmt.Errorf("asking for %s: %w", name, err)
		}
		if *into, err = strconv.ParseInt(text, 10, 64); err != nil {
			return a, fmt.Errorf("%s: %w", name, err)
		}
	}
	return a, nil
}
