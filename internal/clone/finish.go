package clone

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
)

// extentPages is the number of pages by which tablespaces grow once they have as many.
const extentPages = 64

// Finish brings all files to their sizes and to disk, and lets mysqld start. It comes
// after Snapshot or Replay, without an error of these.
func (a *Applier) Finish(ctx context.Context) error {
	if err := a.at.finished(); err != nil {
		return err
	}
	if err := a.handles.closeAll(); err != nil {
		return err
	}
	for _, files := range []map[uint32]*file{a.files, a.redo} {
		for _, index := range slices.Sorted(maps.Keys(files)) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := a.setSize(files[index]); err != nil {
				return err
			}
		}
	}
	if err := a.removeEmptyDirs(); err != nil {
		return err
	}
	dirs, err := a.dirs()
	if err != nil {
		return err
	}
	if err := a.syncDirs(dirs...); err != nil {
		return err
	}
	return a.release()
}

// Close closes what an unfinished Applier has open; after Finish there is nothing to do.
func (a *Applier) Close() error { return a.handles.closeAll() }

// setSize makes a file as large as it was on the donor when that saw it last.
func (a *Applier) setSize(f *file) error {
	if f.deleted {
		return a.dropLate(f)
	}
	handle, err := a.root.OpenFile(f.name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := handle.Stat()
	if err == nil {
		if size := f.target(info.Size()); size != info.Size() {
			err = handle.Truncate(size)
			if err == nil {
				err = handle.Sync()
			}
		}
	}
	if closeErr := handle.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("bringing %s to its size: %w", f.name, err)
	}
	return nil
}

// target is the size of a file that now has the one given.
func (f *file) target(now int64) int64 {
	if size := f.size.Load(); now < size {
		return size
	}
	if f.fsp == noFSP {
		return now
	}
	page := int64(pageSize)
	if shift := f.fsp >> 1 & 0xf; shift != 0 {
		page = 512 << shift
	}
	extent := extentPages * page
	if now <= extent {
		return now
	}
	return (now + extent - 1) / extent * extent
}

// dropLate removes a file of which was said that it is being dropped, and never that it is.
func (a *Applier) dropLate(f *file) error {
	if f.name == "" {
		return nil
	}
	return a.root.Remove(f.name)
}

// release leaves the flags of a clone that is complete.
func (a *Applier) release() error {
	for _, flag := range []string{statusFix, replaceFiles} {
		if err := a.root.WriteFile(flag, nil, fileMode); err != nil {
			return err
		}
	}
	if err := a.syncDirs(cloneDir); err != nil {
		return err
	}
	if err := a.root.Remove(statusInProgress); err != nil {
		return err
	}
	return a.syncDirs(cloneDir)
}

// syncDirs makes durable what is in directories.
func (a *Applier) syncDirs(dirs ...string) error {
	for _, dir := range dirs {
		d, err := a.root.Open(dir)
		if err != nil {
			return err
		}
		err = d.Sync()
		if closeErr := d.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return fmt.Errorf("making %s durable: %w", dir, err)
		}
	}
	return nil
}
