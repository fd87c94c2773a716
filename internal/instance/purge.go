package instance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
)

const (
	// purgeLook is between two looks at which binary logs may go.
	purgeLook = 30 * time.Second
	// purgeLimit bounds what is asked of mysqld for it.
	purgeLimit = 10 * time.Second
)

// keepLogs holds the server's own purge of binary logs back as long as they are to be archived,
// whether that succeeds or not, and purges those that are. Where a Cluster archives, mysqld is
// started with its purge held back, for it purges while it starts; it goes by its own rule once
// this instance takes no writes. One that archives again later keeps them as where the store does
// not answer. A manager that ends leaves it as it is: the next one goes on. While accounts are locked nothing
// is asked: SET GLOBAL waits for that lock, and whoever logs in because its connection is busy does, too. But
// a status that is late for another reason is taken for that while any commit waits for acknowledgements, as one
// always does on a busy primary: so what would fill the volume meanwhile is asked for.
func (a *archiver) keepLogs(ctx context.Context) {
	tick := newTicker(archiveLook)
	defer tick.Stop()
	var released *process // the one that was told last to purge by itself
	var next time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.again()
		}
		if a.by.accountsLocked() && a.hasRoom() {
			continue
		}
		proc := a.by.server()
		switch isWished := !a.by.archives().IsNone() || a.by.keepsLogs(); {
		case !isWished:
			next = time.Time{}
			if proc.running() && proc != released && a.by.mayPurgeByItself() && a.letGoOfLogs(ctx) {
				released = proc
			}
		case time.Now().After(next):
			released, next = nil, time.Now().Add(purgeLook)
			if err := a.lookAfterLogs(ctx, a.archivedTo()); err != nil && ctx.Err() == nil {
				a.log.Warn("binary logs are not purged; it is tried again", "error", err)
				next = time.Now().Add(archiveAgain)
			}
		}
	}
}

// hasRoom reports whether the volume has room for binary logs that nobody purges.
func (a *archiver) hasRoom() bool {
	free, size, err := a.opt.Room()
	return err == nil && facts.HoldsBack(free, size)
}

// archivedTo is the first binary log that is not archived as a whole; "" while nobody knows,
// as when the store does not answer.
func (a *archiver) archivedTo() string {
	a.mu.Lock()
	shipper := a.shipper
	a.mu.Unlock()
	if shipper == nil {
		return ""
	}
	return shipper.Archived()
}

// letGoOfLogs has mysqld purge by itself.
func (a *archiver) letGoOfLogs(ctx context.Context) (done bool) {
	ctx, cancel := context.WithTimeout(ctx, purgeLimit)
	defer cancel()
	err := a.asks().HoldLogs(ctx, false)
	if err != nil {
		a.log.Debug("mysqld was not told that its binary logs may expire", "error", err)
	}
	return err == nil
}

// lookAfterLogs lets go what is archived and has expired. Once the volume is nearly full,
// nothing is held back.
func (a *archiver) lookAfterLogs(ctx context.Context, needed string) error {
	ctx, cancel := context.WithTimeout(ctx, purgeLimit)
	defer cancel()
	free, size, err := a.opt.Room()
	if err != nil {
		return err
	}
	holds := facts.HoldsBack(free, size)
	if !holds {
		a.log.Warn("the volume is nearly full: binary logs that have expired go, archived or not")
	}
	if err := a.asks().HoldLogs(ctx, holds); err != nil {
		return err
	}
	seconds, err := a.asks().LogsExpireAfter(ctx)
	if err != nil {
		return err
	}
	logs, err := a.binaryLogs()
	if err != nil {
		return err
	}
	if to := facts.Purge(logs, needed, time.Duration(seconds)*time.Second, time.Now()); to != "" {
		a.log.Info("purges binary logs that are archived and have expired", "before", to)
		return a.root().PurgeLogs(ctx, to)
	}
	if holds {
		return nil
	}
	attached, err := a.allAttached(ctx)
	if err != nil {
		return err
	}
	to, gap := facts.MakeRoom(logs, needed, attached, free, size, time.Now())
	if to == "" {
		return nil
	}
	a.log.Warn("purges binary logs before their time, because the volume is nearly full", "before", to,
		"notArchived", gap)
	return a.root().PurgeLogs(ctx, to)
}

// roomOn tells how many bytes of a directory's volume are free, and how many it has.
func roomOn(dir string) (free, size uint64, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, 0, err
	}
	block := uint64(fs.Bsize)
	return fs.Bavail * block, fs.Blocks * block, nil
}

// allAttached tells whether every replica reads the binary logs. Members of a group do not,
// and get what they lack from any of them: nobody knows what they need. Others that read them, as those
// who capture changes do, are no replicas.
func (a *archiver) allAttached(ctx context.Context) (bool, error) {
	c, _ := a.by.archived()
	if !topologyOf(c).CountsReaders() {
		return false, nil
	}
	account, err := a.opt.Dirs.replicationUser()
	if err != nil {
		return false, fmt.Errorf("which sessions are the replicas': %w", err)
	}
	n, err := a.root().Readers(ctx, account)
	return n >= int(c.Spec.Instances)-1, err
}

// binaryLogs are the server's, oldest first.
func (a *archiver) binaryLogs() ([]facts.Log, error) {
	paths, err := binlog.All(a.opt.Dirs.binlogIndex())
	if err != nil {
		return nil, err
	}
	var out []facts.Log
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		out = append(out, facts.Log{Name: filepath.Base(path), Written: info.ModTime(),
			Size: uint64(info.Size())})
	}
	return out, nil
}
