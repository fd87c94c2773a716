package clone

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// change takes what DDL on the donor made of a file before the state that is about to
// begin. Such files are not in the order in which that happened: a file may get a name
// that another one still has. So all of them are put aside first, see settle.
func (a *Applier) change(d File) error {
	f := a.files[d.Index]
	switch {
	case d.Flags&fileDeleted != 0:
		return a.drop(d.Index)
	case f == nil:
		return a.addNew(d)
	case f.deleted:
		return refuse(Malformed, "file %d is gone, and changes to %q", d.Index, d.Name)
	}
	f.atLeast(int64(d.Size))
	f.fsp = d.FSP
	if d.Flags&fileRenamed == 0 {
		return nil // its compression or encryption changed, for pages to come
	}
	return a.rename(f, d.Index, path.Clean(d.Name))
}

// drop removes a file. Its index is known from now on even if the file never came.
func (a *Applier) drop(index uint32) error {
	f := a.files[index]
	if f == nil {
		f = &file{}
		a.files[index] = f
	}
	f.deleted = true
	if f.name == "" {
		return nil
	}
	if err := a.root.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", f.name, err)
	}
	f.name, f.final = "", ""
	return nil
}

// aside is where a file waits for its final name. No file of a donor is named so.
func aside(index uint32) string { return fmt.Sprintf("%s/#ddl_%d", cloneDir, index) }

func (a *Applier) rename(f *file, index uint32, to string) error {
	f.final = to
	if f.name == aside(index) {
		return nil
	}
	if err := a.root.Rename(f.name, aside(index)); err != nil {
		return fmt.Errorf("putting %s aside: %w", f.name, err)
	}
	f.name = aside(index)
	return nil
}

// Undo tablespaces have the last space ids, and begin with 16 MiB; others with 7 pages.
const (
	firstUndoSpace = 0xff000000
	undoPages      = 1024
	otherPages     = 7
)

// addNew makes a file that DDL made. The donor sends the pages that it wrote, and none
// that the redo log makes; but recovery wants to find a first page that tells whose the
// file is, or takes it for damaged.
func (a *Applier) addNew(d File) error {
	f := newFile(d, aside(d.Index))
	f.final = path.Clean(d.Name)
	a.files[d.Index] = f
	if err := a.create(f); err != nil {
		return err
	}
	if f.fsp == noFSP {
		return nil
	}
	pages := otherPages
	if d.Space >= firstUndoSpace || strings.HasSuffix(f.final, ".ibu") {
		pages = undoPages
	}
	page := firstPage(a.server, d.Space, d.FSP)
	if err := f.open.Truncate(int64(pages * len(page))); err != nil {
		return fmt.Errorf("making %s: %w", f.final, err)
	}
	if _, err := f.open.WriteAt(page, 0); err != nil {
		return fmt.Errorf("making %s: %w", f.final, err)
	}
	return nil
}

// settle gives files that were put aside their final names.
func (a *Applier) settle() error {
	for _, f := range a.files {
		if f.final == "" {
			continue
		}
		if _, err := a.root.Lstat(f.final); err == nil {
			return refuse(Malformed, "two files are named %s", f.final)
		}
		if err := a.root.MkdirAll(path.Dir(f.final), dirMode); err != nil {
			return fmt.Errorf("making the directory of %s: %w", f.final, err)
		}
		if err := a.root.Rename(f.name, f.final); err != nil {
			return fmt.Errorf("naming %s: %w", f.final, err)
		}
		f.name, f.final = f.final, ""
	}
	return nil
}

// removeEmptyDirs removes the directories of schemas that were dropped meanwhile: with
// one left, their names could not be used again. The restored server makes those of
// schemas that only happen to have no file.
func (a *Applier) removeEmptyDirs() error {
	dirs, err := a.dirs()
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) { // children first
		found, err := fs.ReadDir(a.root.FS(), dir)
		if err != nil {
			return err
		}
		if len(found) > 0 || dir == "." || dir == systemDir {
			continue
		}
		if err := a.root.Remove(dir); err != nil {
			return err
		}
	}
	return nil
}

// dirs are all directories, parents before children.
func (a *Applier) dirs() (dirs []string, err error) {
	err = fs.WalkDir(a.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, name)
		}
		return err
	})
	return dirs, err
}
