package instance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"cnmsql.co/api/v1alpha1"
)

// template is a data directory as mysqld --initialize makes it. Making one is most of what a small
// world would cost, so that it is made once, by the product, and copied. initialises has a world
// make its own.
var template struct {
	once sync.Once
	dir  string // "" before it was made
	err  error
}

// copying stands for mysqld, and copies a template where that one would make a data directory.
const copying = `#!/bin/sh
for arg; do
	case $arg in
	--defaults-file=*) config=${arg#*=} ;;
	--initialize-insecure) initialises=yes ;;
	esac
done
if [ -n "$initialises" ]; then
	data=$(sed -n 's/^datadir *= *//p' "$config")
	exec cp -a --reflink=auto '%s' "$data"
fi
exec %s "$@"
`

// initialises has the world's instances make their own data directories by mysqld --initialize.
func (w *world) initialises() *world {
	w.mysqld = w.image()
	return w
}

// image is the command that runs the mysqld of an image's files. It ends with the process of the tests: of one
// that panics, or is ended by its limit, nobody would end it.
func (s site) image() []string {
	lib := filepath.Join(s.root, "usr/lib/x86_64-linux-gnu") + ":" + filepath.Join(s.root, "usr/lib/mysql/private")
	return []string{"setpriv", "--pdeathsig", "KILL", s.root + "/lib64/ld-linux-x86-64.so.2", "--library-path", lib,
		s.root + "/usr/sbin/mysqld"}
}

// copies has the world's instances begin with a copy of the template.
func (w *world) copies() {
	template.once.Do(func() { template.dir, template.err = w.makeTemplate() })
	must(w.t, template.err)
	script := filepath.Join(w.dir, "mysqld")
	var command bytes.Buffer
	for _, arg := range w.image() {
		fmt.Fprintf(&command, "'%s' ", arg)
	}
	must(w.t, os.WriteFile(script, fmt.Appendf(nil, copying, template.dir+"/data", command.Bytes()), 0o700))
	w.mysqld = []string{script}
}

// makeTemplate has the product make a data directory, and takes from it what no two servers share.
func (w *world) makeTemplate() (string, error) {
	dir, err := os.MkdirTemp("", "cnmsql")
	if err != nil {
		return "", err
	}
	w.initialises()
	opt := w.prepare(1).opt
	opt.Log = io.Discard
	m := newManager(opt.withDefaults())
	ctx := context.Background()
	if err := errors.Join(m.launcher.lookForServer(ctx), m.tryVolume(ctx)); err != nil {
		return dir, err
	}
	defer m.record.close()
	if err := m.maker.makeDataDir(ctx, &v1alpha1.Cluster{}); err != nil {
		return dir, err
	}
	made := filepath.Join(dir, "data")
	return dir, errors.Join(os.Rename(opt.Dirs.Data, made), os.Remove(filepath.Join(made, "auto.cnf")),
		os.RemoveAll(filepath.Dir(opt.Dirs.Meta)))
}
