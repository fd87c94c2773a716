// Command backupbench measures, on one machine and without Kubernetes, how long a backup
// of a real mysqld and its restore take, how much memory they need and what they do to the
// server's commits, beside what else copies the same data. It writes docs/benchmarks.json,
// and the section "Backups" of docs/benchmarks.md from it. `make bench-backup` calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"cnmsql.co/test/backupbench/figures"
	"cnmsql.co/test/machine"
	"cnmsql.co/test/mysqld"
)

const (
	jsonFile = "docs/benchmarks.json"
	pageFile = "docs/benchmarks.md"
)

func main() {
	size := bytesFlag(1 << 30)
	flag.Var(&size, "size", "how much data there is, for example 5GiB")
	dir := flag.String("dir", os.TempDir(), "where there is place for seven times as much")
	child := flag.String("child", "", "for the command itself: the JSON of a job that is done by a process of its own")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *child != "" {
		err = beChild(ctx, *child)
	} else {
		err = bench(ctx, *dir, int64(size))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "backupbench:", err)
		os.Exit(1)
	}
}

// bench keeps what was measured only if all of it was.
func bench(ctx context.Context, parent string, size int64) error {
	dir, err := os.MkdirTemp(parent, "cnmsql") // short, for a socket lies in it
	if err != nil {
		return err
	}
	s := &stage{dir: dir, size: size}
	err = s.measure(ctx)
	if err = errors.Join(err, s.close()); err != nil {
		return err
	}
	return errors.Join(s.Save(jsonFile), s.WritePage(pageFile))
}

// measure does everything once, in the order of the table.
func (s *stage) measure(ctx context.Context) error {
	if err := s.setUp(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		s.write(writing, 0), s.write(past, syscall.O_DIRECT), s.copy, s.cloneLocal, s.cloneInstance, s.dump,
		s.backupTo("directory", true), s.backupTo("S3", true),
		// Whichever store is first, the first restore takes two or three times as long.
		s.restoreFrom("directory", true, ", the first time"),
		s.restoreFrom("directory", true, ""), s.restoreFrom("S3", true, ""), s.remove(true),
		s.backupTo(nowhere, false), s.backupTo("directory", false), s.backupTo("S3", false),
		s.restoreFrom("directory", false, ""), s.restoreFrom("S3", false, ""), s.remove(false),
		s.commits, s.commitsOfPair, s.replay, s.commitsOfPods,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// setUp starts the servers, fills the donor and warms the page cache.
func (s *stage) setUp(ctx context.Context) error {
	rootfs := os.Getenv("CNMSQL_MYSQL_ROOTFS")
	binary := os.Getenv("CNMSQL_S3_BIN")
	if rootfs == "" || binary == "" {
		return errors.New("CNMSQL_MYSQL_ROOTFS and CNMSQL_S3_BIN are not set: call make bench-backup, which sets them")
	}
	files, err := mysqld.Open(rootfs)
	if err != nil {
		return err
	}
	if s.donor, err = newServer(s.dir+"/donor", files); err != nil {
		return err
	}
	if err := errors.Join(s.donor.Initialize(ctx), s.donor.start(ctx, 1)); err != nil {
		return err
	}
	if err := s.openStores(ctx, binary); err != nil {
		return err
	}
	begun := time.Now()
	if err := s.donor.fill(ctx, s.size); err != nil {
		return err
	}
	if s.checksums, err = s.donor.checksums(ctx); err != nil {
		return err
	}
	if s.bytes, err = sizeOf(s.donor.Data()); err != nil {
		return err
	}
	say("filled with %d MiB, in %s", s.bytes>>20, time.Since(begun).Round(time.Second))
	if err := errors.Join(s.warmDisk(), readAll(s.donor.Data())); err != nil {
		return err
	}
	s.Run, err = s.describe(ctx)
	return err
}

// describe tells what the figures are of.
func (s *stage) describe(ctx context.Context) (*figures.Run, error) {
	version, err := s.donor.text(ctx, "SELECT @@version")
	if err != nil {
		return nil, err
	}
	return &figures.Run{
		Command: "make bench-backup SIZE=" + bytesFlag(s.size).short(), Date: time.Now().UTC().Format(time.DateOnly),
		Commit:  machine.Commit(ctx),
		Machine: machine.Describe(), Server: "MySQL " + strings.SplitN(version, "-", 2)[0],
		Data: fmt.Sprintf("%d tables, rows of 1 KiB of random decimal digits, %s in the data directory", tables,
			figures.Size(s.bytes)),
		Load: [2]float64{machine.Load(), machine.Load()},
	}, nil
}

func say(format string, args ...any) { fmt.Printf(time.Now().Format("15:04:05 ")+format+"\n", args...) }
