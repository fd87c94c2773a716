package instance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/restore"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

const (
	// restoreAgain is when a restore that failed is started again.
	restoreAgain = 30 * time.Second
	// restoreFullAgain is when one is that had filled its volume, if nobody changes the Cluster.
	restoreFullAgain = 5 * time.Minute
	// takeOverLimit bounds what is done with restored data before they are the cluster's.
	takeOverLimit = 10 * time.Minute
)

// restoreBackup makes the cluster's first data from a backup. As with data that are made
// from nothing, the volume remembers until the end that they are not finished.
func (m *manager) restoreBackup() error {
	cluster := m.object()
	return m.activities.begin(agent.Restoring, func(ctx context.Context) error {
		err := m.restoreFrom(ctx, cluster)
		m.update(func(s *state) { s.restore = nil })
		var named *namedError
		if err != nil && !errors.As(err, &named) {
			why := core.InstanceRestoreFailed
			if errors.Is(err, backup.ArchiveTaken) {
				why = core.InstanceRestoreNotOurs
			}
			return &namedError{core.Problem{Reason: why, Message: err.Error()}, restoreAgain}
		}
		return err
	})
}

func (m *manager) restoreFrom(ctx context.Context, c *v1alpha1.Cluster) error {
	// What an earlier attempt has left may be what fills the volume.
	if err := m.maker.clearDataDir(); err != nil {
		return err
	}
	// A server or a parameter that cannot be used is told before anything is fetched.
	if err := m.configurer.prepareConfig(ctx, c); err != nil {
		return err
	}
	from, err := m.findBackup(ctx)
	if err != nil {
		return err
	}
	defer useAllCores()()
	if err := m.whileThereIsRoom(ctx, func(ctx context.Context) error {
		if err := m.fetchBackup(ctx, c, from); err != nil {
			return err
		}
		return m.ownData(ctx, c, from)
	}); err != nil {
		_ = m.killMysqld()
		return err
	}
	return m.maker.finishData(stagePopulated, core.DataPopulated)
}

// findBackup finds the backup and what is to be replayed on it, and looks whether this
// server can have it. Nothing is written yet.
func (m *manager) findBackup(ctx context.Context) (*restore.Origin, error) {
	t, err := recovery.Read(m.opt.Dirs.Store)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(m.opt.Dirs.Store)
	if err != nil {
		return nil, err
	}
	key, err := seal.Read(m.opt.Dirs.Store)
	if err != nil {
		return nil, err
	}
	return restore.Find(ctx, store.Limited(s, t.MaxBytesPerSecond), key, t, m.launcher.version().String())
}

// fetchBackup writes the backup's files.
func (m *manager) fetchBackup(ctx context.Context, c *v1alpha1.Cluster, from *restore.Origin) error {
	b := from.Base
	m.log.Info("restores a backup", "cluster", b.Cluster.Cluster, "id", b.ID, "passedOver", from.Begun().PassedText(),
		"of", b.Point.UTC().Format(time.RFC3339), "bytes", b.RawSize)
	began := time.Now()
	m.restoredFiles(from, 0, b.RawSize, began)
	if err := os.MkdirAll(m.opt.Dirs.Data, 0o750); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	root, err := os.OpenRoot(m.opt.Dirs.Data)
	if err != nil {
		return fmt.Errorf("opening the data directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	err = backup.Restore(ctx, from.Place.Store, b, root, backup.RestoreOptions{
		Server: m.launcher.version().String(), Key: from.Place.Key,
		Readers:  readersFor(memoryFor(c, m.opt.MemoryLimit)),
		Progress: func(p backup.Progress) { m.restoredFiles(from, p.Done, p.Expected, began) },
	})
	if err != nil {
		return err
	}
	m.log.Info("the backup's files are there", "after", time.Since(began).Round(time.Millisecond).String())
	return nil
}

// readersFor is how many parts are read side by side: each takes some 40 MiB, while mysqld
// does not run yet.
func readersFor(memory int64) int {
	const each, most = 64 << 20, 4
	if memory == 0 {
		return most
	}
	return int(min(max(memory/each, 1), most))
}

// ownData starts mysqld on the restored data, with nobody else let in, replays what the
// archive has besides, and makes the data this cluster's own.
func (m *manager) ownData(ctx context.Context, c *v1alpha1.Cluster, from *restore.Origin) error {
	if err := m.record.change(func(r *volumeRecord) { r.Stage = stageBootstrapping }); err != nil {
		return err
	}
	first, err := m.maker.firstData(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(m.opt.Dirs.initFile(), []byte(first.TakeOverFile()), 0o600); err != nil {
		return fmt.Errorf("writing the first statements: %w", err)
	}
	defer m.opt.Dirs.dropInitFile()
	if err := m.configurer.writeConfig(c, mysql.ToServe); err != nil {
		return err
	}
	m.resetConnections()
	// The events of the restored data wait until they have a primary. Commits do not wait for the
	// disk: until endCleanly, whatever ends this has the restore begin anew.
	if err := m.launch(append(mysql.Unsynced(), "--super-read-only=OFF", "--read-only=OFF", "--offline-mode=ON",
		"--event-scheduler=OFF", "--init-file="+m.opt.Dirs.initFile())...); err != nil {
		return err
	}
	if err := m.maker.awaitAnswer(ctx); err != nil {
		return err
	}
	if err := m.replay(ctx, from); err != nil {
		return err
	}
	m.finishesRestore()
	ctx, cancel := context.WithTimeout(ctx, takeOverLimit)
	defer cancel()
	if err := m.root.TakeOver(ctx, first); err != nil {
		return err
	}
	return m.endCleanly(ctx)
}

// endCleanly has mysqld write all to its files and end. The redo log of a snapshot may hold
// what only the first recovery of it forgives (a key of the donor's, of a table that is gone
// by now): a crash soon after would find it again, and mysqld would not start any more. Then all
// that it has written is brought to disk. It is started as at any other time once the data count.
func (m *manager) endCleanly(ctx context.Context) error {
	proc := get(m, func(s *state) *process { return s.mysqld.proc })
	if err := m.root.FlushAtShutdown(ctx); err != nil {
		return err
	}
	m.update(func(s *state) { s.mysqld.stopRequested = proc })
	m.resetConnections()
	m.root.Reset() // mysqld waits two seconds for sessions to end
	proc.signal(syscall.SIGTERM)
	select {
	case <-proc.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !proc.exit.Success() {
		return proc.diagnose(core.InstanceRestoreFailed, "mysqld did not end cleanly on the restored data")
	}
	return m.record.syncVolume()
}

// replay has the server apply what the archive has up to the target.
func (m *manager) replay(ctx context.Context, from *restore.Origin) error {
	if err := m.root.ForgetAllSources(ctx); err != nil {
		return err
	}
	holds, err := m.root.Executed(ctx)
	if err != nil {
		return err
	}
	plan, err := from.Plan(ctx, holds)
	if err != nil {
		return err
	}
	if err := m.rememberOrigin(from, plan); err != nil {
		return err
	}
	m.log.Info("replays the archive", "parts", plan.Parts(), "to", plan.Reached.UTC().Format(time.RFC3339Nano))
	began := time.Now()
	r := archive.Replay{Place: from.Place, DB: m.root.DB(), Applied: m.dropReplayedLogs,
		Progress: func(p archive.Progress) { m.replayed(from, plan, p, began) }}
	if err := r.Run(ctx, plan); err != nil {
		return fmt.Errorf("replaying the archive: %w", err)
	}
	m.log.Info("the archive is replayed", "after", time.Since(began).Round(time.Millisecond).String())
	return m.tellLacking(ctx, &r)
}

// tellLacking warns of tables that the backup cannot hold.
func (m *manager) tellLacking(ctx context.Context, r *archive.Replay) error {
	lacking, err := r.Lacking(ctx)
	if err != nil {
		return err
	}
	for _, told := range lacking.Told(lackingTold) {
		m.log.Warn("tables lack rows", "tables", told)
	}
	return m.rememberLacking(lacking.Tables(lackingTold))
}

// lackingTold is how many tables are named at most.
const lackingTold = 20

// dropReplayedLogs removes the binary logs of what was replayed: replicas are cloned, and the
// archive of this cluster begins behind it. Not to write them would lose what XA has prepared,
// with its GTIDs, when mysqld is started the next time.
func (m *manager) dropReplayedLogs(ctx context.Context) error {
	if err := m.root.BeginBinaryLog(ctx); err != nil {
		return err
	}
	logs, err := m.archiver.binaryLogs()
	if err != nil || len(logs) == 0 {
		return err
	}
	return m.root.PurgeLogs(ctx, logs[len(logs)-1].Name)
}
