package byhand

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"cnmsql.co/internal/archive"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/restore"
)

// Archive is what is to be replayed on a mysqld that runs on a backup's files.
type Archive struct {
	Where
	// BackupID is the backup, and Target where to stop, as they were given to Restore.
	BackupID string
	Target   recovery.Target
	// Socket and Password are root's way in.
	Socket, Password string
	// Out is told what is done, and what to do next.
	Out io.Writer
}

// Replay brings the server to the target. Broken off, it may be run again, and goes on. The
// process has to be of the user that mysqld runs as, for the server reads what it writes.
func Replay(ctx context.Context, a Archive) error {
	s, key, err := a.open()
	if err != nil {
		return err
	}
	server := mysql.Open(a.Socket, func() mysql.Version { return mysql.Oldest }, func() ([]mysql.Account, error) {
		return []mysql.Account{{User: "root", Password: a.Password}}, nil
	})
	defer server.Close()
	version, err := a.mayReplay(ctx, server.DB())
	if err != nil {
		return err
	}
	task := recovery.Task{Cluster: a.Cluster, BackupID: a.BackupID, Target: a.Target}
	o, err := restore.Find(ctx, s, key, task, version)
	if err != nil {
		return err
	}
	plan, err := a.prepare(ctx, server, o)
	if err != nil {
		return err
	}
	all := archive.Whole(plan)
	a.say("Replaying %d transactions of %d parts, to %s.\n", all.Of, plan.Parts(), stamp(plan.Reached))
	pace := pace{every: 5 * time.Second}
	r := archive.Replay{Place: o.Place, DB: server.DB(), Progress: func(p archive.Progress) {
		pace.tell(func() { a.say("%d of %d transactions, to %s\n", p.Transactions, p.Of, stamp(p.Reached)) })
	}}
	if err := r.Run(ctx, plan); err != nil {
		return fmt.Errorf("replaying the archive (if you run the command again, it goes on): %w", err)
	}
	lacking, err := r.Lacking(ctx)
	if err != nil {
		return err
	}
	for _, told := range lacking.Told(100) {
		a.say("WARNING: %s\n", told)
	}
	a.say("The server has the data of %s: %s\n%s", stamp(plan.Reached), plan.Set.Abbreviate(8), endCleanly)
	return nil
}

// prepare has the server forget what it replicated from, and plans the replay; nothing is changed on a server
// that is another, or cannot be brought to the target.
func (a Archive) prepare(ctx context.Context, server *mysql.Server, o *restore.Origin) (plan facts.Plan, err error) {
	holds, err := server.Executed(ctx)
	if err != nil {
		return plan, err
	}
	if err := a.isRestored(ctx, server.DB(), o, holds); err != nil {
		return plan, err
	}
	if _, err := o.Plan(ctx, holds); err != nil {
		return plan, err
	}
	if err := server.ForgetAllSources(ctx); err != nil {
		return plan, err
	}
	// A replay that was broken off may have gone on until now.
	if holds, err = server.Executed(ctx); err != nil {
		return plan, err
	}
	return o.Plan(ctx, holds)
}

// mayReplay asks a server what could be in the way, and for its version.
func (a Archive) mayReplay(ctx context.Context, db *sql.DB) (version string, err error) {
	var dir, mode string
	err = db.QueryRowContext(ctx, "SELECT @@GLOBAL.version, @@GLOBAL.datadir, @@GLOBAL.gtid_mode").
		Scan(&version, &dir, &mode)
	if err != nil {
		return "", fmt.Errorf("asking mysqld on %s: %w", a.Socket, err)
	}
	if mode != "ON" {
		return "", fmt.Errorf("mysqld has gtid_mode=%s: start it with --gtid-mode=ON --enforce-gtid-consistency=ON",
			mode)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("looking at the data directory of mysqld: %w; run this where mysqld runs", err)
	}
	if stat, is := info.Sys().(*syscall.Stat_t); is && int(stat.Uid) != os.Geteuid() {
		return "", fmt.Errorf("the data directory %s belongs to user %d, and this runs as %d: run it as the user of "+
			"mysqld (sudo -u mysql ...), which has to read what is written", dir, stat.Uid, os.Geteuid())
	}
	version, _, _ = strings.Cut(version, "-")
	return version, nil
}

func (a Archive) say(format string, args ...any) { _, _ = fmt.Fprintf(a.Out, format, args...) }
