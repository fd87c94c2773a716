package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"cnmsql.co/internal/mysql"
)

// launcher starts mysqld: one at a time, and none once the manager ends. It keeps which server the
// image has, and the last process that it started. It asks nothing of its manager.
type launcher struct {
	dirs Dirs
	log  *slog.Logger
	// command runs mysqld; it is looked for in the image when empty.
	command []string
	// news is called when the error log tells that the group has changed.
	news func()

	// starting is held while a process is started, or this one becomes another; it guards child and closing.
	starting sync.Mutex
	child    *process
	// closing: none may be started any more.
	closing bool

	mu  sync.Mutex
	bin binary
}

func newLauncher(m *manager) *launcher {
	return &launcher{dirs: m.opt.Dirs, log: m.log, command: m.opt.Mysqld, news: func() { poke(m.news) }}
}

// server is the mysqld of the image, as far as it was found.
func (l *launcher) server() binary {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bin
}

func (l *launcher) setServer(b binary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bin = b
}

func (l *launcher) version() mysql.Version { return l.server().version }

// lookForServer looks for mysqld, and tells why there is none that can be used.
func (l *launcher) lookForServer(ctx context.Context) error {
	bin := findMysqld(ctx, l.command)
	l.setServer(bin)
	return bin.missing
}

// inherit goes on with a mysqld that this process started before it became what it is.
func (l *launcher) inherit(pid, output int, started time.Time) (*process, error) {
	p, err := inheritProcess(pid, output, started, l.newErrorLog())
	if err != nil {
		return nil, err
	}
	l.starting.Lock()
	defer l.starting.Unlock()
	l.child = p
	return p, nil
}

// spawn starts a mysqld: one at a time, and none once the manager ends. What an
// earlier server left of its socket is removed, so that whoever answers on it is
// this one, and so that mysqld does not mistake the process that has the earlier
// one's pid now for a server in its way.
func (l *launcher) spawn(args ...string) (*process, error) {
	l.starting.Lock()
	defer l.starting.Unlock()
	if err := l.mayStart(); err != nil {
		return nil, err
	}
	for _, file := range []string{l.dirs.socket(), l.dirs.socket() + ".lock"} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("removing what an earlier mysqld left: %w", err)
		}
	}
	p, err := l.server().start(l.newErrorLog(), l.dirs.config(), args...)
	if err == nil {
		l.child = p
	}
	return p, err
}

func (l *launcher) newErrorLog() *errorLog {
	return newErrorLog(l.log, l.news)
}

// mayStart tells what forbids to start a mysqld; starting is held.
func (l *launcher) mayStart() error {
	if l.closing {
		return errors.New("starting mysqld: the manager is ending")
	}
	if l.child.running() {
		return fmt.Errorf("starting mysqld: the earlier one (pid %d) has not ended yet", l.child.handle.Pid)
	}
	return nil
}

// idle returns an error while a mysqld uses the data directory, and when none may be started any
// more.
func (l *launcher) idle() error {
	l.starting.Lock()
	defer l.starting.Unlock()
	return l.mayStart()
}

// lastChild keeps any further mysqld from being started, and returns the last.
func (l *launcher) lastChild() *process {
	l.starting.Lock()
	defer l.starting.Unlock()
	l.closing = true
	return l.child
}
