package instance

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/cores"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/restore"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// takeOverLimit bounds the statements by which restored data become the cluster's.
const takeOverLimit = 10 * time.Minute

// restorer makes a cluster's first data from a backup and the archive, or from a running server. It keeps
// how far that is; what it must remember stands on the volume.
type restorer struct {
	opt        Options
	log        *slog.Logger
	launcher   *launcher
	configurer *configurer
	activities *activities
	maker      *dataMaker
	archiver   *archiver
	by         restoring
	// record is what stands on the volume, and root is mysqld.
	record func() *recordFile
	root   func() *mysql.Server

	mu sync.Mutex
	// now is how far it is; nil while none goes on.
	now *core.Restore
}

// restoring is what a restorer asks of its manager.
type restoring interface {
	// launch starts a mysqld that is seen through its life, and killMysqld ends it; that is no crash.
	launch(args ...string) error
	killMysqld() error
	// server is the mysqld that runs, or ran last; nil if none did.
	server() *process
	// noteStopRequested: the end of a process is no crash.
	noteStopRequested(p *process)
	// resetConnections has the manager log in again.
	resetConnections()
	// retell has the report made again.
	retell()
}

func newRestorer(m *manager, c concerns) *restorer {
	return &restorer{opt: m.opt, log: m.log, launcher: c.launcher, configurer: c.configurer,
		activities: c.activities, maker: c.maker, archiver: c.archiver, by: m,
		record: func() *recordFile { return m.record }, root: func() *mysql.Server { return m.root }}
}

// tell has it reported how far a restore is.
func (r *restorer) tell(now *core.Restore) {
	r.mu.Lock()
	r.now = now
	r.mu.Unlock()
	r.by.retell()
}

// beginning is what a cluster's first data are made of.
type beginning interface {
	// write fills the data directory, which is empty.
	write(ctx context.Context, c *v1alpha1.Cluster, root *os.Root) error
	// replay has the mysqld that was started on it apply what is still to come, and remembers what the
	// data began with.
	replay(ctx context.Context) error
}

// makeData makes the cluster's first data from what its spec says to begin with. As with data that are
// made from nothing, the volume remembers until the end that they are not finished.
func (r *restorer) makeData(cluster *v1alpha1.Cluster) error {
	return r.activities.begin(agent.Restoring, func(ctx context.Context) error {
		// A part is fetched whole before anything of it is written.
		err := r.restoreFrom(store.WithProgress(ctx, r.activities.moves), cluster)
		r.tell(nil)
		if err != nil {
			return restoreProblem(err)
		}
		return nil
	})
}

func (r *restorer) restoreFrom(ctx context.Context, c *v1alpha1.Cluster) error {
	// What an earlier attempt has left may be what fills the volume.
	if err := r.maker.clearDataDir(); err != nil {
		return err
	}
	// A server or a parameter that cannot be used is told before anything is fetched.
	if err := r.configurer.prepareConfig(ctx, c); err != nil {
		return err
	}
	from, err := r.find(ctx)
	if err != nil {
		return err
	}
	defer cores.UseAll()()
	if err := r.whileThereIsRoom(ctx, func(ctx context.Context) error {
		if err := r.fill(ctx, c, from); err != nil {
			return err
		}
		return r.ownData(ctx, c, from)
	}); err != nil {
		_ = r.by.killMysqld()
		return r.countFailure(ctx, c.Generation, err)
	}
	return r.maker.finishData(stagePopulated, core.DataPopulated)
}

// find finds what the data are made of. Nothing is written yet.
func (r *restorer) find(ctx context.Context) (beginning, error) {
	t, err := recovery.Read(r.opt.Dirs.Store)
	if err != nil {
		return nil, err
	}
	if t.Server != nil {
		donor, err := restore.Donor(r.opt.Dirs.Store, *t.Server)
		return &runningServer{restorer: r, name: t.Server.Name, donor: donor}, err
	}
	from, err := r.findBackup(ctx, t)
	return &storedBackup{r, from}, err
}

// fill makes the data directory, and has it filled.
func (r *restorer) fill(ctx context.Context, c *v1alpha1.Cluster, from beginning) error {
	if err := os.MkdirAll(r.opt.Dirs.Data, 0o750); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	root, err := os.OpenRoot(r.opt.Dirs.Data)
	if err != nil {
		return fmt.Errorf("opening the data directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	return from.write(ctx, c, root)
}

// storedBackup is a backup in an object store, and the archive beside it.
type storedBackup struct {
	*restorer
	from *restore.Origin
}

// findBackup finds the backup and what is to be replayed on it, and looks whether this
// server can have it.
func (r *restorer) findBackup(ctx context.Context, t recovery.Task) (*restore.Origin, error) {
	s, err := store.Open(r.opt.Dirs.Store)
	if err != nil {
		return nil, err
	}
	key, err := seal.Read(r.opt.Dirs.Store)
	if err != nil {
		return nil, err
	}
	return restore.FindAgain(ctx, store.Limited(s, t.MaxBytesPerSecond), key, t, r.launcher.version().String(),
		r.record().get().RestoreFailures.Suspects)
}

// write writes the backup's files.
func (r *storedBackup) write(ctx context.Context, c *v1alpha1.Cluster, root *os.Root) error {
	from := r.from
	b := from.Base
	r.log.Info("this instance restores a backup",
		"cluster", b.Cluster.Cluster, "id", b.ID, "passedOver", from.Begun().PassedText(),
		"of", b.Point.UTC().Format(time.RFC3339), "bytes", b.RawSize)
	began := time.Now()
	r.writtenFiles(from.Begun(), 0, b.RawSize, began)
	err := backup.Restore(ctx, from.Place.Store, b, root, backup.RestoreOptions{
		Server: r.launcher.version().String(), Key: from.Place.Key,
		Readers:  readersFor(memoryFor(c, r.opt.MemoryLimit)),
		Progress: func(p backup.Progress) { r.writtenFiles(from.Begun(), p.Done, p.Expected, began) },
	})
	if err != nil {
		return err
	}
	r.log.Info("the files of the backup are restored", "after", time.Since(began).Round(time.Millisecond).String())
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

// ownData starts mysqld on the written data, with nobody else let in, has replayed what is still to
// come, and makes the data this cluster's own.
func (r *restorer) ownData(ctx context.Context, c *v1alpha1.Cluster, from beginning) error {
	if err := r.record().change(func(v *volumeRecord) { v.Stage = stageBootstrapping }); err != nil {
		return err
	}
	first, err := r.maker.firstData(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.opt.Dirs.initFile(), []byte(first.TakeOverFile()), 0o600); err != nil {
		return fmt.Errorf("writing the first statements: %w", err)
	}
	defer r.opt.Dirs.dropInitFile()
	if err := r.configurer.writeConfig(c, mysql.ToServe); err != nil {
		return err
	}
	r.by.resetConnections()
	// The events of the restored data wait until they have a primary. Commits do not wait for the
	// disk: until endCleanly, whatever ends this has the restore begin anew.
	if err := r.by.launch(append(mysql.Unsynced(), "--super-read-only=OFF", "--read-only=OFF", "--offline-mode=ON",
		"--event-scheduler=OFF", "--init-file="+r.opt.Dirs.initFile())...); err != nil {
		return err
	}
	if err := r.maker.awaitAnswer(ctx); err != nil {
		return err
	}
	if err := r.root().ForgetAllSources(ctx); err != nil {
		return err
	}
	if err := from.replay(ctx); err != nil {
		return err
	}
	r.finishesRestore()
	if err := r.takeOver(ctx, first); err != nil {
		return err
	}
	return r.endCleanly(ctx)
}

// takeOver makes the data this cluster's own, and has mysqld leave nothing in the redo log when it
// ends.
func (r *restorer) takeOver(ctx context.Context, first mysql.First) error {
	ctx, cancel := context.WithTimeout(ctx, takeOverLimit)
	defer cancel()
	if err := r.root().TakeOver(ctx, first); err != nil {
		return fmt.Errorf("making the restored data this cluster's own: %w", err)
	}
	return r.root().FlushAtShutdown(ctx)
}

// replay has the server apply what the archive has up to the target.
func (r *storedBackup) replay(ctx context.Context) error {
	from := r.from
	holds, err := r.root().Executed(ctx)
	if err != nil {
		return err
	}
	plan, passed, err := from.PlanAgain(ctx, holds)
	if err != nil {
		return err
	}
	if passed != nil {
		r.log.Warn("transactions that were archived while the backup was written are not replayed", "error", passed)
	}
	if err := r.rememberOrigin(from, plan); err != nil {
		return err
	}
	r.log.Info("this instance replays the archive",
		"parts", plan.Parts(), "to", plan.Reached.UTC().Format(time.RFC3339Nano))
	began := time.Now()
	replay := archive.Replay{Place: from.Place, DB: r.root().DB(), Applied: r.dropReplayedLogs,
		Progress: func(p archive.Progress) { r.replayed(from, plan, p, began) }}
	if err := replay.Run(ctx, plan); err != nil {
		return fmt.Errorf("replaying the archive: %w", err)
	}
	r.log.Info("the archive is replayed", "after", time.Since(began).Round(time.Millisecond).String())
	lacking, err := replay.Lacking(ctx)
	if err != nil {
		return err
	}
	return r.tellLacking(lacking)
}

// tellLacking warns of tables that lack rows, and remembers them.
func (r *restorer) tellLacking(lacking archive.Lacking) error {
	for _, told := range lacking.Told(lackingTold) {
		r.log.Warn("some tables may hold fewer rows than they had in the backed-up Cluster", "tables", told)
	}
	return r.rememberLacking(lacking.Tables(lackingTold))
}

// lackingTold is how many tables are named at most.
const lackingTold = 20

// dropReplayedLogs removes the binary logs of what was replayed: replicas are cloned, and the
// archive of this cluster begins behind it. Not to write them would lose what XA has prepared,
// with its GTIDs, when mysqld is started the next time.
func (r *restorer) dropReplayedLogs(ctx context.Context) error {
	if err := r.root().BeginBinaryLog(ctx); err != nil {
		return err
	}
	logs, err := r.archiver.binaryLogs()
	if err != nil || len(logs) == 0 {
		return err
	}
	return r.root().PurgeLogs(ctx, logs[len(logs)-1].Name)
}

// What a restorer asks of its manager, besides.

func (m *manager) noteStopRequested(p *process) {
	m.update(func(s *state) { s.mysqld.stopRequested = p })
}
