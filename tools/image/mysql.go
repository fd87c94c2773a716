package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// mysqlTree is the cached result of one recipe:
//
//	CACHE/mysql-KEY/rootfs     the files, to chroot into
//	CACHE/mysql-KEY/layer.tar  the same as they were when made; images are made from this, so that
//	                           what tests leave in rootfs stays out
//	CACHE/mysql-rootfs         a link to the rootfs that was asked for last; mysql-rootfs-8.0 for that release
type mysqlTree struct {
	cache, release, key string
}

func (t mysqlTree) dir() string            { return filepath.Join(t.cache, "mysql-"+t.key) }
func (t mysqlTree) layer() string          { return filepath.Join(t.dir(), "layer.tar") }
func (t mysqlTree) recipe() recipe         { return recipes[t.release] }
func (t mysqlTree) link() string           { return filepath.Join(t.cache, "mysql-rootfs"+t.suffix()) }
func (t mysqlTree) defaultArchive() string { return filepath.Join(t.cache, "mysql"+t.suffix()+".tar") }

func (t mysqlTree) suffix() string {
	if t.release == defaultRelease {
		return ""
	}
	return "-" + t.release
}

// openMySQL finds the tree in the cache, or makes it. Two of these at once are safe: the second
// waits and finds what the first made.
func openMySQL(ctx context.Context, cache, release string, progress io.Writer) (mysqlTree, error) {
	if _, known := recipes[release]; !known {
		return mysqlTree{}, fmt.Errorf("there is no recipe for MySQL %s, only for %s", release,
			strings.Join(slices.Sorted(maps.Keys(recipes)), " and "))
	}
	cache, err := cacheDirectory(cache)
	if err != nil {
		return mysqlTree{}, err
	}
	unlock, err := lock(filepath.Join(cache, "lock"))
	if err != nil {
		return mysqlTree{}, err
	}
	defer unlock()
	tree := mysqlTree{cache: cache, release: release, key: recipes[release].key()}
	if _, err := os.Stat(tree.layer()); errors.Is(err, os.ErrNotExist) {
		if err := tree.make(ctx, progress); err != nil {
			return mysqlTree{}, fmt.Errorf("make the MySQL image's files: %w", err)
		}
	} else if err != nil {
		return mysqlTree{}, err
	}
	return tree, tree.pointLink()
}

func cacheDirectory(given string) (string, error) {
	if given == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a place for the cache: %w; or name one with --cache", err)
		}
		given = filepath.Join(user, "cnmsql")
	}
	absolute, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	return absolute, os.MkdirAll(absolute, 0o755)
}

func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// make builds in a directory of its own and renames it when it is whole and mysqld has answered from inside it.
func (t mysqlTree) make(ctx context.Context, progress io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New(
			"this needs root, to give files to the mysql user and to try mysqld in a chroot; run it with sudo " +
				"(once: the result is cached)")
	}
	work, err := os.MkdirTemp(t.cache, "mysql-"+t.key+".partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	packages, rootfs := filepath.Join(work, "packages"), filepath.Join(work, "rootfs")
	if err := extractPackages(ctx, t.recipe(), packages, progress); err != nil {
		return err
	}
	if err := os.Mkdir(rootfs, 0o755); err != nil {
		return err
	}
	if err := selectFiles(t.recipe(), packages, rootfs); err != nil {
		return err
	}
	if err := tryPrograms(ctx, t.recipe(), rootfs, progress); err != nil {
		return err
	}
	if err := writeTreeLayer(rootfs, filepath.Join(work, "layer.tar")); err != nil {
		return err
	}
	if err := os.RemoveAll(packages); err != nil {
		return err
	}
	if err := os.Chmod(work, 0o755); err != nil { // MkdirTemp's 0700 would shut out the server's user
		return err
	}
	return os.Rename(work, t.dir())
}

// tryPrograms starts each program once where nothing but the selected files exists: a library
// that the closure missed shows here and not in somebody's cluster.
func tryPrograms(ctx context.Context, r recipe, rootfs string, progress io.Writer) error {
	for _, program := range r.Programs {
		version, err := command{
			Argv: []string{"/" + program, "--version"}, Chroot: rootfs, UID: mysqlID,
			Advice: "a file that the program needs is not in the image; name it in the recipe (tools/image/recipe.go)",
		}.run(ctx, progress)
		if err != nil {
			return err
		}
		fmt.Fprint(progress, "  ", version)
	}
	return nil
}

func writeTreeLayer(rootfs, out string) error {
	entries, err := directoryEntries(rootfs)
	if err != nil {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer file.Close()
	buffered := bufio.NewWriterSize(file, 1<<20)
	if err := writeLayer(buffered, entries); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return file.Close()
}

func (t mysqlTree) pointLink() error {
	target := filepath.Join("mysql-"+t.key, "rootfs")
	if now, err := os.Readlink(t.link()); err == nil && now == target {
		return nil
	}
	fresh := t.link() + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, t.link())
}

func (t mysqlTree) writeImage(tag, out string) (made, error) {
	return image{
		Tag: tag, Architecture: t.recipe().Architecture, Layer: t.layer(),
		Run: runConfig{
			User: fmt.Sprintf("%d:%d", mysqlID, mysqlID),
			Env:  []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Cmd:  []string{"mysqld"}, WorkingDir: "/",
		},
	}.write(out)
}
