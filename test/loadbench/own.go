package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

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

// replicated is a source and its replicas, of which one has to acknowledge each commit. The
// replicas are as durable as MySQL makes one: sync_relay_log is at its default.
func (o *own) replicated(ctx context.Context, at *place, replicas ...string) (err error) {
	var all []*server
	defer func() {
		if err != nil {
			err = errors.Join(err, o.remove(all...))
		}
	}()
	for i, name := range append([]string{"source"}, replicas...) {
		s, err := newServer(ctx, o.dir+"/"+name, o.files, o.version, uint32(i+1))
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	at.primary, at.awaits, at.always = all[0].client, true, true
	for _, replica := range all[1:] {
		at.replicas = append(at.replicas, replica.client)
	}
	at.end = func(context.Context) error { return o.remove(all...) }
	return couple(ctx, all[0], all[1:])
}

// semiSyncTimeout is MySQL's default.
const semiSyncTimeout = 10 * time.Second

// couple returns when the source takes writes, and all replicas acknowledge them.
func couple(ctx context.Context, source *server, replicas []*server) error {
	for _, replica := range replicas {
		if err := replica.follow(ctx, source); err != nil {
			return err
		}
	}
	if err := source.local.RequireAcks(ctx, 1, semiSyncTimeout); err != nil {
		return err
	}
	err := source.process.Answers(ctx, "the semi-synchronous replicas", func() error {
		var name, clients string
		row := source.local.DB().QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_clients'")
		err := row.Scan(&name, &clients)
		if err == nil && clients != strconv.Itoa(len(replicas)) {
			err = fmt.Errorf("%s replicas acknowledge", clients)
		}
		return err
	})
	if err != nil {
		return err
	}
	return source.open(ctx)
}
