package main

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// entry is one path of an image. Path is relative and clean; Source is read for regular files.
type entry struct {
	Path     string
	Mode     fs.FileMode
	UID, GID int
	Size     int64
	Target   string
	Source   string
}

// epoch is every entry's time: a layer's digest must depend on what is in it, not on when it was made.
var epoch = time.Unix(0, 0)

func writeLayer(w io.Writer, entries []entry) error {
	out := tar.NewWriter(w)
	for _, e := range entries {
		if err := writeEntry(out, e); err != nil {
			return fmt.Errorf("put %s into the layer: %w", e.Path, err)
		}
	}
	return out.Close()
}

func writeEntry(out *tar.Writer, e entry) error {
	if err := out.WriteHeader(e.header()); err != nil {
		return err
	}
	if !e.Mode.IsRegular() {
		return nil
	}
	in, err := os.Open(e.Source)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(out, in)
	return err
}

func (e entry) header() *tar.Header {
	h := &tar.Header{
		Name: e.Path, Typeflag: tar.TypeReg, Size: e.Size, Mode: tarMode(e.Mode),
		Uid: e.UID, Gid: e.GID, ModTime: epoch, Format: tar.FormatPAX,
	}
	switch {
	case e.Mode.IsDir():
		h.Name, h.Typeflag, h.Size = e.Path+"/", tar.TypeDir, 0
	case e.Mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, e.Target, 0
	}
	return h
}

func tarMode(m fs.FileMode) int64 {
	mode := int64(m.Perm())
	if m&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return mode
}

// directoryEntries lists a directory tree in the order of its paths, with the owners and modes that it has on disk.
func directoryEntries(root string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		e, err := diskEntry(root, path)
		entries = append(entries, e)
		return err
	})
	return entries, err
}

func diskEntry(root, path string) (entry, error) {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return entry{}, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return entry{}, err
	}
	owner := info.Sys().(*syscall.Stat_t)
	e := entry{Path: rel, Mode: info.Mode(), UID: int(owner.Uid), GID: int(owner.Gid), Size: info.Size(), Source: path}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		e.Target, err = os.Readlink(path)
	case !info.Mode().IsRegular() && !info.IsDir():
		err = fmt.Errorf("%s is neither a file, a directory nor a link (%s); images hold only these", path, info.Mode())
	}
	return e, err
}
