// Package direct writes files past the page cache, where their file system can. What is
// written once and read by nobody soon would crowd out what is read, and stops its writer
// where the memory of a container is bounded. It must not know what is in a file.
package direct

import (
	"errors"
	"os"
	"syscall"
)

const (
	// From is the size of a file from which on it is worth it.
	From = 1 << 20
	// unit is what such a write begins at, and has multiples of.
	unit = 4096
)

// File is a file that is open twice: once past the page cache.
type File struct {
	*os.File
	past *os.File // nil where it cannot be opened so
}

// Of is a file of a name in root that is open for writing, and will have so many bytes.
func Of(root *os.Root, name string, f *os.File, size int64) *File {
	if size < From {
		return &File{File: f}
	}
	return &File{f, open(root, name)}
}

// WriteAt implements io.WriterAt. What begins or ends within a unit goes through the page
// cache, and so does what the device refuses, which may want other units than are known here.
// Either sees what the other has written.
func (f *File) WriteAt(b []byte, at int64) (n int, err error) {
	if f.past == nil || at%unit != 0 || len(b)%unit != 0 {
		return f.File.WriteAt(b, at)
	}
	if n, err = f.past.WriteAt(b, at); errors.Is(err, syscall.EINVAL) {
		return f.File.WriteAt(b, at)
	}
	return n, err
}

// Close closes both. Sync before it makes durable what either has written.
func (f *File) Close() error {
	err := f.File.Close()
	if f.past != nil {
		err = errors.Join(err, f.past.Close())
	}
	return err
}
