package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sys/unix"

	"cnmsql.co/test/backupbench/figures"
)

const (
	copyingOver = "`CLONE INSTANCE` from another server"
	// errNobodyRestarts is what mysqld says when it has its copy and nobody starts it again.
	errNobodyRestarts = 3707
	// coreOfPrimary and coreOfReplica are what each server of a pair has, as if it had a machine
	// of its own: what a backup computes, it computes where the replica is.
	coreOfPrimary, coreOfReplica = 0, 1
)

// cloneInstance has another server copy the donor's data, as MySQL does it, and starts it on
// them.
func (s *stage) cloneInstance(ctx context.Context) (err error) {
	if s.replica, err = newServer(s.dir+"/replica", s.donor.Files); err != nil {
		return err
	}
	// Initialising wants an empty directory, and newServer makes it.
	if err := errors.Join(s.replica.Initialize(ctx), s.replica.start(ctx, 2)); err != nil {
		return err
	}
	if err := s.replica.exec(ctx, "SET GLOBAL clone_valid_donor_list = '"+s.donor.Address()+"'"); err != nil {
		return err
	}
	begun := s.begin()
	err = s.replica.exec(ctx, "CLONE INSTANCE FROM backup@127.0.0.1:"+strconv.Itoa(s.donor.Port)+
		" IDENTIFIED BY 'secret' REQUIRE SSL")
	if is, answered := errors.AsType[*mysql.MySQLError](err); !answered || is.Number != errNobodyRestarts {
		return fmt.Errorf("CLONE INSTANCE is to end with error %d: %w", errNobodyRestarts, err)
	}
	unix.Sync()
	took := time.Since(begun)
	s.replica.Kill()
	bytes, err := sizeOf(s.replica.Data())
	if err != nil {
		return err
	}
	s.add(figures.Figure{What: copyingOver, Bytes: bytes}, took, copying, cloning)
	return s.replica.start(ctx, 2)
}

// follow makes the replica follow the donor.
func (s *stage) follow(ctx context.Context) error {
	return s.replica.exec(ctx, fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, "+
		"SOURCE_USER = 'backup', SOURCE_PASSWORD = 'secret', SOURCE_SSL = 1, SOURCE_AUTO_POSITION = 1", s.donor.Port),
		"START REPLICA")
}

// catchUp waits until the replica has all that the donor has executed.
func (s *stage) catchUp(ctx context.Context) error {
	executed, err := s.donor.text(ctx, "SELECT @@gtid_executed")
	if err != nil {
		return err
	}
	waited, err := s.replica.text(ctx, fmt.Sprintf("SELECT WAIT_FOR_EXECUTED_GTID_SET('%s', 600)", executed))
	if err == nil && waited != "0" {
		err = errors.New("the replica has not caught up after ten minutes")
	}
	return err
}

// commitsOfPair measures inserts on a primary whose replica is backed up. Each has a core of its
// own; the disk they share.
func (s *stage) commitsOfPair(ctx context.Context) error {
	if err := errors.Join(s.follow(ctx), s.catchUp(ctx)); err != nil {
		return err
	}
	free, err := pinned(map[int]int{os.Getpid(): coreOfPrimary, s.donor.PID(): coreOfPrimary,
		s.replica.PID(): coreOfReplica, s.s3.PID(): coreOfReplica})
	defer free()
	if err != nil {
		return err
	}
	if err := s.commitsAlone(ctx, "of a pair, "); err != nil {
		return err
	}
	return s.commitsDuring(ctx, "of a pair, during a backup of the replica", s.replica, nil)
}

// pinned has each process, with all its threads and those that it makes, run on one core, until
// free is called.
func pinned(core map[int]int) (free func(), err error) {
	free = func() {
		for pid := range core {
			_ = pin(pid, coreOfPrimary, coreOfReplica)
		}
	}
	for pid, c := range core {
		err = errors.Join(err, pin(pid, c))
	}
	return free, err
}

func pin(pid int, cores ...int) error {
	var set unix.CPUSet
	for _, c := range cores {
		set.Set(c)
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return fmt.Errorf("listing the threads of process %d: %w", pid, err)
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err == nil {
			err = unix.SchedSetaffinity(tid, &set)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("pinning thread %s of process %d to a core: %w", task.Name(), pid, err)
		}
	}
	return nil
}
