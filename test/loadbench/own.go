package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/internal/mysql"
	"cnmsql.co/test/mysqld"
)

// own is where servers without an operator are made.
type own struct {
	dir     string
	files   mysqld.Files
	version mysql.Version
}

// newOwn makes a directory for them.
func newOwn(ctx context.Context, parent string) (*own, error) {
	rootfs := os.Getenv("CNMSQL_MYSQL_ROOTFS")
	if rootfs == "" {
		return nil, errors.New("CNMSQL_MYSQL_ROOTFS is not set: call make bench-load, which sets it")
	}
	o := &own{}
	var err error
	if o.files, err = mysqld.Open(rootfs); err != nil {
		return nil, err
	}
	banner, err := o.files.Program(ctx, "sbin/mysqld", "--no-defaults", "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("asking mysqld for its version: %w", err)
	}
	if o.version, err = mysql.ParseVersion(string(banner)); err != nil {
		return nil, err
	}
	if o.dir, err = os.MkdirTemp(parent, "cnmsql"); err != nil { // short, for a socket lies in it
		return nil, fmt.Errorf("making a place for data; name another with -dir: %w", err)
	}
	return o, nil
}

func (o *own) close() error { return os.RemoveAll(o.dir) }

// bare is one server.
func (o *own) bare(ctx context.Context, at *place) error {
	s, err := newServer(ctx, o.dir+"/bare", o.files, o.version, 1)
	if err != nil {
		return err
	}
	at.primary, at.end = s.client, func(context.Context) error { return o.remove(s) }
	if err := s.open(ctx); err != nil {
		return errors.Join(err, o.remove(s))
	}
	return nil
}

// remove ends servers and removes their data.
func (o *own) remove(all ...*server) (err error) {
	for _, s := range all {
		s.end()
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// pair is a source and a replica, whose acknowledgement each commit awaits. The replica is as
// durable as MySQL makes one: sync_relay_log is at its default.
func (o *own) pair(ctx context.Context, at *place) error {
	source, err := newServer(ctx, o.dir+"/source", o.files, o.version, 1)
	if err != nil {
		return err
	}
	replica, err := newServer(ctx, o.dir+"/replica", o.files, o.version, 2)
	if err != nil {
		return errors.Join(err, o.remove(source))
	}
	at.primary, at.replicas = source.client, []*driver.Config{replica.client}
	at.awaits, at.always = true, true
	at.end = func(context.Context) error { return o.remove(source, replica) }
	if err := couple(ctx, source, replica); err != nil {
		return errors.Join(err, o.remove(source, replica))
	}
	return nil
}

// semiSyncTimeout is MySQL's default.
const semiSyncTimeout = 10 * time.Second

// couple returns when the source takes writes, and has a replica that acknowledges them.
func couple(ctx context.Context, source, replica *server) error {
	if err := replica.follow(ctx, source); err != nil {
		return err
	}
	if err := source.local.RequireAcks(ctx, 1, semiSyncTimeout); err != nil {
		return err
	}
	err := source.process.Answers(ctx, "the semi-synchronous replica", func() error {
		var name, clients string
		row := source.local.DB().QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_clients'")
		err := row.Scan(&name, &clients)
		if err == nil && clients != "1" {
			err = fmt.Errorf("%s replicas acknowledge", clients)
		}
		return err
	})
	if err != nil {
		return err
	}
	return source.open(ctx)
}
