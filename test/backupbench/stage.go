package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/store"
	"cnmsql.co/test/backupbench/figures"
	"cnmsql.co/test/machine"
	"cnmsql.co/test/mysqld"
	"cnmsql.co/test/shares"
)

// What figures are called, where others are held against them.
const (
	writing = "sequential write"
	past    = "sequential write past the page cache"
	copying = "`cp -r`"
	cloning = "`CLONE LOCAL DATA DIRECTORY`"
)

// stage is the donor, the stores, and what was measured with them.
type stage struct {
	figures.Backups
	dir   string
	size  int64
	donor *server
	// replica is the donor's, once there is one.
	replica   *server
	s3        *mysqld.Process
	checksums [tables]string
	// bytes are in the donor's data directory.
	bytes int64
	// pods are what is to be removed at the end.
	pods []*shares.Share
}

// close ends all processes and removes all data.
func (s *stage) close() error {
	for _, server := range []*server{s.donor, s.replica} {
		if server != nil {
			server.Kill()
		}
	}
	s.s3.End()
	for _, pod := range s.pods {
		pod.End()
	}
	return os.RemoveAll(s.dir)
}

// begin brings to disk what others have left, and notes the load.
func (s *stage) begin() time.Time {
	syscall.Sync()
	now := machine.Load()
	s.Run.Load = [2]float64{min(s.Run.Load[0], now), max(s.Run.Load[1], now)}
	return time.Now()
}

func (s *stage) add(f figures.Figure, took time.Duration, beside ...string) {
	s.Add(f, took, beside...)
	say("%s: %.1f s, %d MiB of memory", f.What, took.Seconds(), f.Memory>>20)
}

// room is how many times as much as the data are there is at most beside them.
const room = 2

// warmDisk lets the disk make place for what is written later: where nothing was ever
// written, some disks take several times as long.
func (s *stage) warmDisk() error {
	begun := time.Now()
	err := s.writeFile(room*s.bytes, 0)
	say("warmed the disk up, in %s", time.Since(begun).Round(time.Second))
	return errors.Join(err, os.Remove(s.written()))
}

// write writes as many bytes as there are, as fast as one file can be written.
func (s *stage) write(what string, flags int) func(context.Context) error {
	return func(context.Context) error {
		begun := s.begin()
		if err := s.writeFile(s.bytes, flags); err != nil {
			return err
		}
		s.add(figures.Figure{What: what, Bytes: s.bytes}, time.Since(begun))
		return os.Remove(s.written())
	}
}

func (s *stage) written() string { return s.dir + "/written" }

// writeFile writes whole MiB, as much as size at least.
func (s *stage) writeFile(size int64, flags int) error {
	block := make([]byte, 1<<20)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range block {
		block[i] = byte(source.Uint32())
	}
	f, err := os.OpenFile(s.written(), os.O_WRONLY|os.O_CREATE|os.O_EXCL|flags, 0o644)
	if err != nil {
		return err
	}
	for left := size; left > 0 && err == nil; left -= int64(len(block)) {
		_, err = f.Write(block)
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// copy copies the data directory of the server, which is quiet.
func (s *stage) copy(ctx context.Context) error {
	begun := s.begin()
	if out, err := exec.CommandContext(ctx, "cp", "-r", s.donor.Data(), s.dir+"/copy").CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w\n%s", err, out)
	}
	syscall.Sync()
	s.add(figures.Figure{What: copying, Bytes: s.bytes}, time.Since(begun), writing)
	return os.RemoveAll(s.dir + "/copy")
}

func (s *stage) cloneLocal(ctx context.Context) error {
	to := s.dir + "/clone"
	begun := s.begin()
	if err := s.donor.exec(ctx, "CLONE LOCAL DATA DIRECTORY = '"+to+"'"); err != nil {
		return err
	}
	syscall.Sync()
	took := time.Since(begun)
	bytes, err := sizeOf(to)
	if err != nil {
		return err
	}
	s.add(figures.Figure{What: cloning, Bytes: bytes}, took, copying)
	return os.RemoveAll(to)
}

func (s *stage) dump(ctx context.Context) error {
	to := s.dir + "/dump"
	cmd := s.donor.Program(ctx, "bin/mysqldump", "--socket="+s.donor.Socket(), "--user=root",
		"--single-transaction", "--all-databases",
		"--set-gtid-purged=ON", "--result-file="+to)
	begun := s.begin()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mysqldump: %w\n%s", err, out)
	}
	syscall.Sync()
	took := time.Since(begun)
	info, err := os.Stat(to)
	if err != nil {
		return err
	}
	cpu := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	s.add(figures.Figure{What: "`mysqldump` into a file", Bytes: info.Size(), CPU: cpu}, took, copying, cloning)
	return os.Remove(to)
}

// jobOf is that of a backup.
func (s *stage) jobOf(store, id string, donor *server) (job, error) {
	authority, err := os.ReadFile(donor.Authority())
	return job{Store: s.storeOf(store), ID: id, Donor: donor.Address(), CA: string(authority)}, err
}

// measured is the backup that is measured, and what its rows are called.
func measured(compressed bool) (id, kind string) {
	if compressed {
		return "measured", ""
	}
	return "measured-as-it-is", ", not compressed"
}

func (s *stage) backupTo(store string, compressed bool) func(context.Context) error {
	return func(ctx context.Context) error {
		id, kind := measured(compressed)
		into := store
		if store == nowhere {
			id, into = nowhere, "directory"
		}
		j, err := s.jobOf(into, id, s.donor)
		if err != nil {
			return err
		}
		j.Uncompressed, j.Nowhere = !compressed, store == nowhere
		s.begin()
		o, err := j.run(ctx)
		if err != nil {
			return err
		}
		s.add(o.figure("backup to "+store+kind), o.took, copying, cloning, copyingOver)
		return nil
	}
}

// restoreFrom restores into an empty directory, and compares what a server on it has.
func (s *stage) restoreFrom(store string, compressed bool, when string) func(context.Context) error {
	return func(ctx context.Context) error {
		id, kind := measured(compressed)
		to, err := newServer(s.dir+"/restored-"+store, s.donor.Files)
		if err != nil {
			return err
		}
		version := strings.TrimPrefix(s.Run.Server, "MySQL ")
		s.begin()
		o, err := job{Store: s.storeOf(store), ID: id, Into: to.Data(), Server: version}.run(ctx)
		if err != nil {
			return err
		}
		s.add(o.figure("restore from "+store+kind+when), o.took, writing, past, copying, cloning)
		defer to.Kill()
		if err := to.start(ctx, 1); err != nil {
			return err
		}
		sums, err := to.checksums(ctx)
		if err != nil {
			return err
		}
		if sums != s.checksums {
			return fmt.Errorf("restored from %s the tables have the checksums %v, and the source has %v",
				store, sums, s.checksums)
		}
		s.Run.Checksums = len(sums)
		to.Kill()
		return os.RemoveAll(to.Dir)
	}
}

// remove makes place in the page cache for what is measured next.
func (s *stage) remove(compressed bool) func(context.Context) error {
	return func(ctx context.Context) error {
		id, _ := measured(compressed)
		for _, name := range []string{"directory", "S3"} {
			in, err := store.Open(s.storeOf(name))
			if err == nil {
				err = backup.Remove(ctx, in, cluster, id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}
