package clone

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"sync/atomic"

	"cnmsql.co/internal/direct"
)

// What a recipient leaves in #clone for the first start of mysqld.
const (
	cloneDir = "#clone"
	// statusInProgress is the file with which mysqld refuses to start.
	statusInProgress = cloneDir + "/#status_in_progress"
	// statusFix is the file by which InnoDB makes schema directories that are missing, and the
	// tables of other engines empty.
	statusFix = cloneDir + "/#status_fix"
	// replaceFiles is the file by which InnoDB writes its position to #clone/#status_recovery.
	replaceFiles = cloneDir + "/#replace_files"

	// systemDir is the directory of the schema mysql. No file of a snapshot is in it, but without
	// it mysqld believes that there is no data dictionary.
	systemDir = "mysql"

	redoDir  = "#innodb_redo"
	fileMode = 0o640
	dirMode  = 0o750
)

// Applier is a Consumer that writes a snapshot into an empty directory, in which mysqld
// of the donor's version can be started after Finish. Until then, it refuses to.
type Applier struct {
	root   *os.Root
	server uint32
	// mu is held by those who write blocks as readers, and by who does anything else.
	mu sync.RWMutex
	at *sequence
	// files by the index of the donor, and redo files by theirs.
	files, redo map[uint32]*file
	handles     handles
}

// file is one file of the data directory.
type file struct {
	// name is where it is. It is moved to final when the next state begins, unless
	// that is "".
	name, final string
	// size is what it has at least in the end.
	size atomic.Int64
	// fsp are the tablespace's flags, noFSP if it is none.
	fsp     uint32
	redo    bool
	deleted bool
	open    *direct.File
}

func newFile(d File, name string) *file {
	f := &file{name: name, fsp: d.FSP}
	f.size.Store(int64(d.Size))
	return f
}

// NewApplier makes an Applier. Nothing is written outside of root, which the caller closes.
func NewApplier(root *os.Root) *Applier {
	return &Applier{root: root, at: newSequence(), files: map[uint32]*file{}, redo: map[uint32]*file{}}
}

// Begin implements Consumer: the directory is marked before anything else is in it.
func (a *Applier) Begin(_ context.Context, from Origin) error {
	if err := from.check(); err != nil {
		return err
	}
	var err error
	if a.server, err = from.serverNumber(); err != nil {
		return err
	}
	found, err := fs.ReadDir(a.root.FS(), ".")
	if err != nil {
		return fmt.Errorf("looking whether the directory is empty: %w", err)
	}
	if len(found) > 0 {
		return refuse(NotEmpty, "%s holds %s and %d others", a.root.Name(), found[0].Name(), len(found)-1)
	}
	for _, dir := range []string{cloneDir, systemDir} {
		if err := a.root.Mkdir(dir, dirMode); err != nil {
			return err
		}
	}
	if err := a.root.WriteFile(statusInProgress, nil, fileMode); err != nil {
		return err
	}
	return a.syncDirs(cloneDir, ".")
}

// Take implements Consumer. Other than that asks for, it may be called by several
// goroutines for blocks of the state that has started.
func (a *Applier) Take(_ context.Context, r Record) error {
	if d, ok := r.Descriptor.(Block); ok {
		return a.write(d, r)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	d, isFile := r.Descriptor.(File)
	ddl := isFile && a.at.ddl(d)
	if err := a.at.next(r); err != nil {
		return err
	}
	switch d := r.Descriptor.(type) {
	case StateChange:
		if d.Start() {
			return a.settle()
		}
	case File:
		switch {
		case ddl:
			return a.change(d)
		case d.Name == "":
			return a.addRedo(d)
		}
		return a.add(d)
	}
	return nil
}

// Accept implements Consumer. Nothing is to be kept until Finish: a directory that is
// not finished is thrown away.
func (a *Applier) Accept(context.Context, State) error { return nil }

// add makes a file of FileCopy, or notes of any that it is being dropped.
func (a *Applier) add(d File) error {
	f := a.files[d.Index]
	if d.Flags&fileDeleted != 0 {
		if f == nil {
			f = &file{}
			a.files[d.Index] = f
		}
		f.deleted = true // the file goes when DDL says so, see drop
		return nil
	}
	f = newFile(d, path.Clean(d.Name))
	a.files[d.Index] = f
	return a.create(f)
}

// addRedo makes a redo file. Donors announce them twice.
func (a *Applier) addRedo(d File) error {
	if f := a.redo[d.Index]; f != nil {
		f.atLeast(int64(d.Size))
		return nil
	}
	f := newFile(d, fmt.Sprintf("%s/#ib_redo%d", redoDir, d.Index))
	f.redo = true
	a.redo[d.Index] = f
	return a.create(f)
}

// create makes a file that must not be there, and its directory.
func (a *Applier) create(f *file) error {
	if err := a.root.MkdirAll(path.Dir(f.name), dirMode); err != nil {
		return fmt.Errorf("making the directory of %s: %w", f.name, err)
	}
	handle, err := a.root.OpenFile(f.name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return fmt.Errorf("making %s: %w", f.name, err)
	}
	return a.keep(f, handle)
}

// write puts a block where it belongs. Data of dropped files may still arrive.
func (a *Applier) write(d Block, r Record) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if err := a.at.next(r); err != nil {
		return err
	}
	files := a.files
	if d.State == StateRedoCopy {
		files = a.redo
	}
	f := files[d.File]
	if f == nil || f.deleted {
		return nil
	}
	if !f.redo {
		f.atLeast(int64(d.FileSize))
	}
	for f.open == nil {
		if err := a.reopen(f); err != nil {
			return err
		}
	}
	if _, err := f.open.WriteAt(r.Data, int64(d.Offset)); err != nil {
		return fmt.Errorf("writing %s: %w", f.name, err)
	}
	return nil
}

// reopen opens a file that was closed to keep others open. The caller holds mu as a
// reader; meanwhile it does not, and the file may be closed again before it does.
func (a *Applier) reopen(f *file) error {
	a.mu.RUnlock()
	defer a.mu.RLock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.open != nil {
		return nil
	}
	handle, err := a.root.OpenFile(f.name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return a.keep(f, handle)
}

// keep notes a file as open. What it holds goes past the page cache: mysqld reads so, too.
func (a *Applier) keep(f *file, handle *os.File) error {
	f.open = direct.Of(a.root, f.name, handle, f.size.Load())
	return a.handles.keep(f)
}

// atLeast makes the size that a file has in the end larger, if it is less.
func (f *file) atLeast(size int64) {
	for now := f.size.Load(); now < size && !f.size.CompareAndSwap(now, size); now = f.size.Load() {
	}
}

// handles keeps some files open, for blocks of a file mostly come one behind the other.
// A file is durable when it is closed.
type handles struct{ open []*file }

// maxOpen files at a time.
const maxOpen = 64

// keep adds an open file, and closes that which was opened first if there are too many.
func (h *handles) keep(f *file) error {
	h.open = append(h.open, f)
	if len(h.open) <= maxOpen {
		return nil
	}
	first := h.open[0]
	h.open = h.open[1:]
	return first.close()
}

// close makes durable what was written, and closes.
func (f *file) close() error {
	handle := f.open
	if handle == nil {
		return nil
	}
	f.open = nil
	var err error
	if !f.deleted {
		err = handle.Sync()
	}
	if closeErr := handle.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("making %s durable: %w", f.name, err)
	}
	return nil
}

// closeAll closes what is open, and returns the first error.
func (h *handles) closeAll() error {
	var err error
	for _, f := range h.open {
		if closeErr := f.close(); err == nil {
			err = closeErr
		}
	}
	h.open = nil
	return err
}
