package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"cnmsql.co/internal/direct"
)

// directory keeps objects as files. Whatever a key is, os.Root keeps it inside.
//
// The bucket is opened for every call: a Store is never closed, and a volume that is
// mounted later is found. An object cannot be where the path of another one leads through
// (a and a/b), which S3 allows. A file system that hangs, hangs the caller.
type directory struct {
	bucket string // the path of the bucket's directory
	path   string // before every key
}

// temporary holds files that are being written, in the bucket. Those of writers that died
// are removed after leftover.
const (
	temporary = reserved + "tmp"
	leftover  = 24 * time.Hour
)

// Directory is the store of the objects below a directory, of which the path of each is its key.
func Directory(dir string) Store {
	return newDirectory(Config{Bucket: filepath.Base(dir)}, filepath.Dir(dir))
}

func newDirectory(c Config, dir string) *directory {
	return &directory{bucket: filepath.Join(dir, c.Bucket), path: c.Path}
}

func (d *directory) Put(ctx context.Context, key string, body []byte) error {
	return d.put(ctx, key, body, how{})
}

func (d *directory) Create(ctx context.Context, key string, body []byte) error {
	return d.put(ctx, key, body, how{create: true})
}

func (d *directory) put(ctx context.Context, key string, body []byte, how how) error {
	return d.with(ctx, "writing", key, func(root *os.Root) error {
		name, err := d.write(ctx, root, body, how.pace)
		if err != nil {
			return err
		}
		defer func() { _ = root.Remove(name) }() // there is none after a rename
		return d.place(root, name, path.Join(d.path, key), how.create)
	})
}

// with opens the bucket, and says of an error what was tried on what.
func (d *directory) with(ctx context.Context, what, key string, do func(*os.Root) error) error {
	err := CheckKey(key)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		var root *os.Root
		if root, err = d.open(); err == nil {
			defer func() { _ = root.Close() }()
			err = because(reasonOfFile(do(root)))
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s in directory %s: %w", what, path.Join(d.path, key), d.bucket, err)
	}
	return nil
}

func (d *directory) open() (*os.Root, error) {
	root, err := os.OpenRoot(d.bucket)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, because(NoBucket, err)
	}
	if err != nil {
		return nil, because(reasonOfFile(err))
	}
	return root, nil
}

// reasonOfFile gives an error of a file system and its Reason; nil when there is none.
func reasonOfFile(err error) (*Reason, error) {
	var known *Reason
	switch {
	case err == nil, errors.As(err, &known):
		return nil, err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return Full, err
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return AccessDenied, err
	case errors.Is(err, fs.ErrExist):
		return Exists, err
	case errors.Is(err, fs.ErrNotExist):
		return NotFound, err
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return Refused, err
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.ESTALE), errors.Is(err, syscall.ETIMEDOUT):
		return Unavailable, err
	}
	return nil, err
}

// write writes a temporary file, and gives its name when it is on disk.
func (d *directory) write(ctx context.Context, root *os.Root, body []byte,
	pace *rate.Limiter) (name string, err error) {
	if err := root.Mkdir(temporary, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	sweep(root)
	name = path.Join(temporary, rand.Text())
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return "", err
	}
	to := direct.Of(root, name, f, int64(len(body)))
	if err = pour(ctx, to, body, pace); err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		_ = root.Remove(name)
	}
	return name, err
}

// piece is what is written at once.
const piece = 1 << 20

// pour writes a body, no faster than pace, until the context ends.
func pour(ctx context.Context, to io.WriterAt, body []byte, pace *rate.Limiter) error {
	for at := 0; at < len(body); at += piece {
		b := body[at:min(len(body), at+piece)]
		if err := cmp.Or(ctx.Err(), wait(ctx, pace, len(b))); err != nil {
			return err
		}
		if _, err := to.WriteAt(b, int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what writers left that died. Nothing depends on it.
func sweep(root *os.Root) {
	entries, err := fs.ReadDir(root.FS(), temporary)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > leftover {
			_ = root.Remove(path.Join(temporary, e.Name()))
		}
	}
}

// place gives a temporary file its name, and returns when the name is on disk. Delete may
// remove a directory that was just made: it is made again then.
func (d *directory) place(root *os.Root, name, to string, create bool) (err error) {
	move := root.Rename
	if create {
		move = link(root)
	}
	for range 10 {
		if err = root.MkdirAll(path.Dir(to), 0o777); errors.Is(err, fs.ErrExist) {
			return because(Refused, err) // an object is where the path leads through
		} else if err != nil {
			return err
		}
		if err = move(name, to); err == nil {
			return syncUp(root, path.Dir(to))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// link fails when there is a file, atomically. Some file systems have no links.
func link(root *os.Root) func(from, to string) error {
	return func(from, to string) error {
		err := root.Link(from, to)
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) {
			return because(Unsupported, err)
		}
		return err
	}
}

// syncUp makes a directory's entries durable, and its own, up to the bucket. A directory
// that another's Delete removed has none.
func syncUp(root *os.Root, dir string) error {
	for ; ; dir = path.Dir(dir) {
		f, err := root.Open(dir)
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		if err != nil && (dir == "." || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		if dir == "." {
			return nil
		}
	}
}

// Get opens the file of a key; NotFound when there is none, or what is there is no file.
func (d *directory) Get(ctx context.Context, key string) (body io.ReadCloser, err error) {
	err = d.with(ctx, "reading", key, func(root *os.Root) error {
		f, err := root.Open(path.Join(d.path, key))
		if errors.Is(err, syscall.ENOTDIR) {
			return because(NotFound, err)
		}
		if err != nil {
			return err
		}
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			_ = f.Close()
			return cmp.Or(err, error(NotFound))
		}
		body = &fileReader{ctx, f}
		return nil
	})
	return body, err
}

// fileReader is a file that ends with its context, and whose errors have Reasons.
type fileReader struct {
	ctx context.Context
	*os.File
}

// Read reads the file as long as the context has not ended.
func (r *fileReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.File.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = because(reasonOfFile(err))
	}
	return n, err
}

// Delete removes the file of a key, and directories above it that are empty then. A directory by
// that name is no object, and stays.
func (d *directory) Delete(ctx context.Context, key string) error {
	return d.with(ctx, "deleting", key, func(root *os.Root) error {
		name := path.Join(d.path, key)
		info, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && info.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return prune(root, path.Dir(name))
	})
}

// prune removes directories that are empty, and makes durable what was removed.
func prune(root *os.Root, dir string) error {
	for dir != "." && root.Remove(dir) == nil {
		dir = path.Dir(dir)
	}
	return syncUp(root, dir)
}

// List walks through the directory. An error is the last that it gives.
func (d *directory) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		root, err := d.open()
		if err == nil {
			defer func() { _ = root.Close() }()
			before := ""
			if d.path != "" {
				before = d.path + "/"
			}
			w := &walk{ctx: ctx, root: root.FS(), before: before, prefix: before + prefix, yield: yield}
			_, err = w.dir(".")
			err = because(reasonOfFile(err))
		}
		if err != nil {
			yield(Object{}, fmt.Errorf("listing %s in directory %s: %w", path.Join(d.path, prefix), d.bucket, err))
		}
	}
}

// walk yields the files below a directory that begin with prefix, in the order of keys.
type walk struct {
	ctx    context.Context
	root   fs.FS
	before string // is no part of keys
	prefix string // with before
	yield  func(Object, error) bool
}

// dir walks through a directory, in the order of the keys, and reports whether to go on. What is
// removed meanwhile is not told of.
func (w *walk) dir(dir string) (more bool, err error) {
	entries, err := fs.ReadDir(w.root, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	// a/b comes after a.b, though a comes before it.
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(inKey(a), inKey(b)) })
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), reserved) || !w.wanted(name, e.IsDir()) {
			continue
		}
		if err := w.ctx.Err(); err != nil {
			return false, err
		}
		if e.IsDir() {
			more, err = w.dir(name)
		} else {
			more, err = w.file(name, e)
		}
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// inKey is an entry's part of keys.
func inKey(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// wanted reports whether a file begins with the prefix, or one below a directory may.
func (w *walk) wanted(name string, isDir bool) bool {
	if isDir {
		return strings.HasPrefix(name+"/", w.prefix) || strings.HasPrefix(w.prefix, name+"/")
	}
	return strings.HasPrefix(name, w.prefix)
}

func (w *walk) file(name string, e fs.DirEntry) (more bool, err error) {
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return w.yield(Object{Key: strings.TrimPrefix(name, w.before), Size: info.Size(), Modified: info.ModTime()},
		nil), nil
}
