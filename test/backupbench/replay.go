package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/byhand"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/store"
	"cnmsql.co/test/backupbench/figures"
)

const (
	// writers insert transactions, which are then applied.
	writers      = 16
	transactions = 50_000
	replayed     = "replayed"
)

// replay has the same transactions applied by a replica, which has received them already, and
// from the archive, on what was restored of a backup from before them.
func (s *stage) replay(ctx context.Context) error {
	ship, end, err := s.shipper(ctx)
	if err != nil {
		return err
	}
	defer end()
	j, err := s.jobOf("directory", replayed, s.donor)
	if err == nil {
		_, err = j.run(ctx)
	}
	if err == nil {
		err = s.replica.exec(ctx, "STOP REPLICA SQL_THREAD")
	}
	if err == nil {
		err = s.donor.writeMuch(ctx)
	}
	if err == nil {
		err = s.shipped(ctx, ship)
	}
	if err != nil {
		return err
	}
	end()
	bytes, err := s.archived(ctx)
	if err != nil {
		return err
	}
	applying := fmt.Sprintf("a replica applies %d transactions", transactions)
	if err := s.apply(ctx, figures.Figure{What: applying, Bytes: bytes}); err != nil {
		return err
	}
	s.replica.Kill() // memory for the other
	return s.replayArchive(ctx, figures.Figure{What: "the same replayed from the archive", Bytes: bytes}, applying)
}

// shipper archives the donor's binary logs into the directory, from now on, until it is ended.
func (s *stage) shipper(ctx context.Context) (ship *archive.Shipper, end func(), err error) {
	uuid, err := s.donor.text(ctx, "SELECT @@server_uuid")
	if err != nil {
		return nil, nil, err
	}
	start, err := s.donor.executed(ctx)
	if err != nil {
		return nil, nil, err
	}
	to, err := store.Open(s.storeOf("directory"))
	if err != nil {
		return nil, nil, err
	}
	ship, err = archive.NewShipper(archive.Config{Store: to, Prefix: backup.LogPrefix(cluster), Cluster: cluster,
		Epoch: 1, Instance: "bench-1", ServerUUID: uuid, Start: start, Index: s.donor.Data() + "/binlog.index",
		Executed: s.donor.executed, May: func(context.Context) error { return nil }, TargetRPO: time.Second})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := ship.Run(ctx); err != nil {
			say("the archive: %v", err)
		}
	})
	return ship, func() { cancel(); wg.Wait() }, nil
}

// shipped waits until all is archived that the donor has executed.
func (s *stage) shipped(ctx context.Context, ship *archive.Shipper) error {
	executed, err := s.donor.executed(ctx)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); !ship.Status().Archived.Contains(executed); {
		if time.Now().After(deadline) {
			return errors.New("what was written is still not archived")
		}
		<-time.After(100 * time.Millisecond)
	}
	return nil
}

// archived is how many bytes of binary logs are in the archive.
func (s *stage) archived(ctx context.Context) (bytes int64, err error) {
	from, err := store.Open(s.storeOf("directory"))
	if err != nil {
		return 0, err
	}
	all, err := archive.Load(ctx, from, backup.LogPrefix(cluster))
	for _, p := range all.Parts {
		bytes += p.Size
	}
	return bytes, err
}

func (s *server) executed(ctx context.Context) (gtid.Set, error) {
	text, err := s.text(ctx, "SELECT @@gtid_executed")
	if err != nil {
		return gtid.Set{}, err
	}
	return gtid.Parse(text)
}

// writeMuch inserts rows, each in a transaction of its own. They are not synced, for nobody
// measures that.
func (s *server) writeMuch(ctx context.Context) error {
	if err := s.exec(ctx, "SET GLOBAL sync_binlog = 0", "SET GLOBAL innodb_flush_log_at_trx_commit = 0"); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for n := range writers {
		wg.Go(func() {
			for i := 0; i < transactions/writers && errs[n] == nil; i++ {
				_, errs[n] = s.DB.ExecContext(ctx, "INSERT INTO bench.inserts (v) VALUES (REPEAT('v', 200))")
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, s.exec(ctx, "SET GLOBAL sync_binlog = 1",
		"SET GLOBAL innodb_flush_log_at_trx_commit = 1"))...)
}

// apply measures the replica's applier. All that it applies it has received.
func (s *stage) apply(ctx context.Context, f figures.Figure) error {
	executed, err := s.donor.executed(ctx)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); ; {
		received, err := s.replica.text(ctx, "SELECT received_transaction_set "+
			"FROM performance_schema.replication_connection_status")
		if err != nil {
			return err
		}
		own, err := s.replica.executed(ctx)
		if err != nil {
			return err
		}
		has, err := gtid.Parse(received)
		if err != nil {
			return err
		}
		if has.Union(own).Contains(executed) {
			break
		}
		if time.Now().After(deadline) {
			return errors.New("the replica does not receive what was written")
		}
		<-time.After(100 * time.Millisecond)
	}
	begun := s.begin()
	if err := errors.Join(s.replica.exec(ctx, "START REPLICA SQL_THREAD"), s.catchUp(ctx)); err != nil {
		return err
	}
	s.add(f, time.Since(begun))
	return nil
}

// replayArchive measures what a restore does behind its backup.
func (s *stage) replayArchive(ctx context.Context, f figures.Figure, beside string) error {
	to, err := newServer(s.dir+"/replayed", s.donor.Files)
	if err != nil {
		return err
	}
	version := strings.TrimPrefix(s.Run.Server, "MySQL ")
	j := job{Store: s.storeOf("directory"), ID: replayed, Into: to.Data(), Server: version}
	if _, err := j.run(ctx); err != nil {
		return err
	}
	flags := append(mysql.Unsynced(), "--event-scheduler=OFF") // as a restore in a cluster
	if err := to.start(ctx, 3, flags...); err != nil {
		return err
	}
	defer to.Kill()
	begun := s.begin()
	if err := byhand.Replay(ctx, byhand.Archive{Where: byhand.Where{Store: s.storeOf("directory"), Cluster: cluster},
		BackupID: replayed, Target: recovery.Target{}, Socket: to.Socket(), Out: io.Discard}); err != nil {
		return err
	}
	has, err := to.executed(ctx)
	if err != nil {
		return err
	}
	if want, err := s.donor.executed(ctx); err != nil || !has.Contains(want) {
		return errors.Join(fmt.Errorf("the replay ends with %s, and not with %s", has, want), err)
	}
	if err := to.Stop(); err != nil {
		return err
	}
	unix.Sync()
	s.add(f, time.Since(begun), beside)
	return os.RemoveAll(to.Dir)
}
