package instance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/internal/binlog"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// purgeLimit bounds what is asked of mysqld to purge binary logs.
const purgeLimit = 10 * time.Second

// keepLogs holds the server's own purge of binary logs back as long as they are to be archived,
// whether that succeeds or not, and purges those that are. Where a Cluster archives, mysqld is
// started with its purge held back, for it purges while it starts; it goes by its own rule once
// this instance takes no writes. One that archives again later keeps them as where the store does
// not answer. A manager that ends leaves it as it is: the next one goes on. While accounts are locked nothing
// is asked: SET GLOBAL waits for that lock, and whoever logs in because its connection is busy does, too. But
// a status that is late for another reason is taken for that while any commit waits for acknowledgements, as one
// always does on a busy primary: so what would fill the volume meanwhile is asked for.
func (a *archiver) keepLogs(ctx context.Context) {
	tick := newTicker(facts.LookEvery)
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
			released, next = nil, time.Now().Add(facts.PurgeEvery)
			if err := a.lookAfterLogs(ctx, a.archivedTo()); err != nil && ctx.Err() == nil {
				a.log.Warn("cannot purge binary logs; the manager tries again", "error", err)
				next = time.Now().Add(facts.BeginRetry)
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
		a.log.Debug("cannot let mysqld purge expired binary logs by itself", "error", err)
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
		a.log.Warn("the volume is nearly full: mysqld purges binary logs that have expired, archived or not")
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
		a.log.Info("the manager purges binary logs that are archived and have expired", "before", to)
		return a.root().PurgeLogs(ctx, to)
	}
	if holds {
		return nil
	}
	return a.makeRoom(ctx, logs, needed, free, size)
}

// makeRoom lets go of binary logs before their time.
func (a *archiver) makeRoom(ctx context.Context, logs []facts.Log, needed string, free, size uint64) error {
	others, err := a.others(ctx)
	if err != nil {
		return err
	}
	room := facts.MakeRoom(a.withBeginnings(logs), needed, others, free, size, time.Now())
	if room.To == "" {
		return nil
	}
	a.log.Warn("the volume is nearly full: the manager purges binary logs that have not expired", "before", room.To,
		"notArchived", room.Gap, "othersMayNeedThem", room.Needed)
	return a.root().PurgeLogs(ctx, room.To)
}

// withBeginnings adds what the server had executed when it began each log, as far as that can be read.
func (a *archiver) withBeginnings(logs []facts.Log) []facts.Log {
	out, now := slices.Clone(logs), time.Now()
	for i := range out {
		l, err := binlog.OpenLog(filepath.Join(a.opt.Dirs.Data, out[i].Name))
		if err != nil {
			a.log.Debug("cannot read which transactions a binary log holds", "error", err)
			continue
		}
		out[i].Began = core.Known(l.Previous, now, now)
		_ = l.Close()
	}
	return out
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

// others are those who may need the binary logs. What the operator noted of an instance is a lower bound of what that
// has executed: a set that was too long is abbreviated there, and tells nothing.
func (a *archiver) others(ctx context.Context) (facts.Others, error) {
	c, _ := a.by.archived()
	noted := map[string]gtid.Set{}
	for name, text := range c.Status.GTIDExecutedByInstance {
		if set, err := gtid.Parse(text); err == nil {
			noted[name] = set
		}
	}
	isMe := func(name string) bool { return name == a.opt.Instance }
	names := slices.DeleteFunc(slices.Clone(c.Status.InstanceNames), isMe)
	if topologyOf(c).CountsReaders() {
		attached, err := a.allAttached(ctx, int(c.Spec.Instances)-1)
		return facts.Replicas(attached, names, noted), err
	}
	committed, err := a.root().CommittedByAll(ctx)
	if err != nil {
		return facts.Others{}, err
	}
	view, err := a.root().GroupView(ctx)
	if err != nil {
		return facts.Others{}, err
	}
	return facts.Members(c.Status.InstanceNames, view, committed, noted), nil
}

// allAttached tells whether so many replicas read the binary logs. Others that read them, as those who capture changes
// do, are no replicas.
func (a *archiver) allAttached(ctx context.Context, replicas int) (bool, error) {
	account, err := a.opt.Dirs.replicationUser()
	if err != nil {
		return false, fmt.Errorf("which sessions are the replicas': %w", err)
	}
	n, err := a.root().Readers(ctx, account)
	return n >= replicas, err
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
