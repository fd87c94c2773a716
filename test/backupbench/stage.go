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

	"cnmsql.co/test/backupbench/figures"
	"cnmsql.co/test/machine"
	"cnmsql.co/test/mysqld"
)

// What figures are called, where others are held against them.
const (
	writing = "sequential write"
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
}

// close ends all processes and removes all data.
func (s *stage) close() error {
	for _, server := range []*server{s.donor, s.replica} {
		if server != nil {
			server.Kill()
		}
	}
	s.s3.End()
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
	err := s.writeFile(room * s.bytes)
	say("warmed the disk up, in %s", time.Since(begun).Round(time.Second))
	return errors.Join(err, os.Remove(s.written()))
}

// write writes as many bytes as there are, as fast as one file can be written.
func (s *stage) write(context.Context) error {
	begun := s.begin()
	if err := s.writeFile(s.bytes); err != nil {
		return err
	}
	s.add(figures.Figure{What: writing, Bytes: s.bytes}, time.Since(begun))
	return os.Remove(s.written())
}

func (s *stage) written() string { return s.dir + "/written" }

func (s *stage) writeFile(size int64) error {
	block := make([]byte, 1<<20)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range block {
		block[i] = byte(source.Uint32())
	}
	f, err := os.Create(s.written())
	if err != nil {
		return err
	}
	for left := size; left > 0 && err == nil; left -= int64(len(block)) {
		_, err = f.Write(block[:min(left, int64(len(block)))])
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

func (s *stage) backupTo(store string) func(context.Context) error {
	return func(ctx context.Context) error {
		j, err := s.jobOf(store, "measured", s.donor)
		if err != nil {
			return err
		}
		s.begin()
		o, err := j.run(ctx)
		if err != nil {
			return err
		}
		s.add(o.figure("backup to "+store), o.took, copying, cloning, copyingOver)
		return nil
	}
}

// restoreFrom restores into an empty directory, and compares what a server on it has.
func (s *stage) restoreFrom(store, when string) func(context.Context) error {
	return func(ctx context.Context) error {
		to, err := newServer(s.dir+"/restored-"+store, s.donor.Files)
		if err != nil {
			return err
		}
		version := strings.TrimPrefix(s.Run.Server, "MySQL ")
		s.begin()
		o, err := job{Store: s.storeOf(store), ID: "measured", Into: to.Data(), Server: version}.run(ctx)
		if err != nil {
			return err
		}
		s.add(o.figure("restore from "+store+when), o.took, writing, copying, cloning)
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
