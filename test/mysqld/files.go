// Package mysqld runs a real mysqld on loopback, out of the unpacked files of its packages
// (`go run ./tools/image mysql-rootfs`), which are of another system than this one, for tests and
// benchmarks. A Server returns errors; a Test is one that fails its test instead, and goes with
// it. The package must not know what is tried with the server, and no product code imports it.
package mysqld

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Files are those of the packages.
type Files struct{ root string }

// Open finds the files below a directory.
func Open(rootfs string) (Files, error) {
	root, err := filepath.EvalSymlinks(rootfs)
	return Files{root}, err
}

// Program of the files, by its path below /usr. It ends with this process.
func (f Files) Program(ctx context.Context, name string, args ...string) *exec.Cmd {
	return f.run(ctx, f.root+"/usr/"+name, args...)
}

// run runs a program with the libraries of the files.
func (f Files) run(ctx context.Context, path string, args ...string) *exec.Cmd {
	lib := f.root + "/usr/lib/x86_64-linux-gnu:" + f.root + "/usr/lib/mysql/private"
	cmd := exec.CommandContext(ctx, f.root+"/lib64/ld-linux-x86-64.so.2",
		append([]string{"--library-path", lib, path}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Settings lead mysqld to its own files, by the names of parameters.
func (f Files) Settings() map[string]string {
	return map[string]string{
		"user": "root", "basedir": f.root + "/usr", "lc_messages_dir": f.root + "/usr/share/mysql",
		"character_sets_dir": f.root + "/usr/share/mysql/charsets", "plugin_dir": f.root + "/usr/lib/mysql/plugin",
	}
}
