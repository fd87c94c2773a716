package byhand

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/restore"
)

// Files is a backup that is to be written into a directory.
type Files struct {
	Where
	// BackupID and Target as a Cluster's recovery has them.
	BackupID string
	Target   recovery.Target
	// Into is the data directory, which is empty or made.
	Into string
	// Mysqld is the program that is to run on it: its version has to fit.
	Mysqld string
	// Out is told what is done, and what to do next.
	Out io.Writer
}

// Restore chooses the backup from which the target is reached, and writes it. Nothing is
// written if the target cannot be reached, a key does not fit, or mysqld does not.
func Restore(ctx context.Context, f Files) error {
	s, key, err := f.open()
	if err != nil {
		return err
	}
	server, err := versionOf(ctx, f.Mysqld)
	if err != nil {
		return err
	}
	task := recovery.Task{Cluster: f.Cluster, BackupID: f.BackupID, Target: f.Target}
	o, err := restore.Find(ctx, s, key, task, server)
	if err != nil {
		return err
	}
	if text := o.Begun().PassedText(); text != "" {
		f.say("PASSED OVER, because they cannot be used: %s\n", text)
	}
	f.say("Backup %s, of %s, %s, by mysqld %s: writing it into %s.\n",
		o.Base.ID, stamp(o.Base.Point), mib(o.Base.RawSize), o.Base.Server, f.Into)
	if err := os.MkdirAll(f.Into, 0o750); err != nil {
		return err
	}
	root, err := os.OpenRoot(f.Into)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	pace := pace{every: 5 * time.Second}
	progress := func(p backup.Progress) {
		pace.tell(func() { f.say("%s of %s\n", mib(p.Done), mib(p.Expected)) })
	}
	err = backup.Restore(ctx, s, o.Base, root, backup.RestoreOptions{Server: server, Key: key, Progress: progress})
	if err != nil {
		return err
	}
	return f.next(o)
}

// next says how the data are used.
func (f Files) next(o *restore.Origin) error {
	dir, err := filepath.Abs(f.Into)
	if err != nil {
		return err
	}
	socket, passwords := dir+".sock", dir+".password.sql"
	f.say(`The files are written. Next:

1. Give them to the user of mysqld:    chown -R mysql:mysql %[1]s
2. Write a new root password, which the server's password policies accept, into %[2]s, which only that user may read:
     SET sql_log_bin = 0; ALTER USER 'root'@'localhost' IDENTIFIED BY '...' REQUIRE NONE ACCOUNT UNLOCK;
3. Start mysqld on the files, where no client reaches it. The first start recovers InnoDB.
     %[3]s --no-defaults --user=mysql --datadir=%[1]s --socket=%[4]s \
       --skip-networking --mysqlx=OFF --skip-replica-start --event-scheduler=OFF \
       --server-id=1 --gtid-mode=ON --enforce-gtid-consistency=ON --init-file=%[2]s
   and with the old cluster's values of innodb_page_size and lower_case_table_names.
`, dir, passwords, f.Mysqld, socket)
	if f.Target.Immediate {
		f.say("4. The server has the data of the backup.\n%s", endCleanly)
		return nil
	}
	f.say(`4. Replay the archive, as the user of mysqld, with root's password in a file:
     cnmsql store replay%s --backup %s%s --socket %s --password-file FILE
`, f.flags(), o.Base.ID, targetFlags(f.Target), quoted(socket))
	return nil
}

// endCleanly tells the reader to have mysqld end with a slow shutdown before anybody writes. The
// first recovery forgives what the redo log of a snapshot holds; no later one does.
const endCleanly = `Before clients write to it, have mysqld write everything to its files and end:
     SET GLOBAL innodb_fast_shutdown = 1; SHUTDOWN;
Then start it without --init-file.
`

func (f Files) say(format string, args ...any) { _, _ = fmt.Fprintf(f.Out, format, args...) }

// versionOf asks a mysqld for its version.
func versionOf(ctx context.Context, mysqld string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, mysqld, "--no-defaults", "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("asking mysqld for its version (%s); give --mysqld, the one for the data: %w",
			strings.TrimSpace(mysqld+" "+string(out)), err)
	}
	v, err := mysql.ParseVersion(string(out))
	return v.String(), err
}

// quoted is a word for a shell.
func quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n'\"$`\\&|;<>()*?[]#~") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// pace lets something be told now and then.
type pace struct {
	every time.Duration
	last  time.Time
}

func (p *pace) tell(do func()) {
	if time.Since(p.last) >= p.every {
		p.last = time.Now()
		do()
	}
}
