package instance

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// spared is a file that can be replaced on a full volume, too. A spare file beside it keeps the room:
// it is written over, brought to disk, and changes names with the file. Whoever reads the file finds
// the old text or the new one, never a part: only the spare is ever written to. Behind the text are
// line feeds up to the size of the file.
type spared struct{ file string }

// sparedSize is the least size of such a file, and of the spare. It grows with the text: there is
// room for one of twice the length.
const sparedSize = 16 << 10

func (s spared) spare() string { return s.file + ".new" }

// write replaces the text; after a crash it is the old or the new one. It takes room only when the
// spare is too small or missing, and makes none for the next text: see keepRoom.
func (s spared) write(text []byte) error {
	// Until it is on disk which file has which name, the spare may be what is read after a crash.
	if err := syncDir(s.file); err != nil {
		return err
	}
	if err := s.fillSpare(text); err != nil {
		return err
	}
	if err := s.exchange(); err != nil {
		return err
	}
	return syncDir(s.file)
}

// fillSpare writes text into the spare, and keeps its size.
func (s spared) fillSpare(text []byte) error {
	f, err := os.OpenFile(s.spare(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = func() error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		rest := max(info.Size()-int64(len(text)), 0)
		if _, err := f.Write(append(bytes.Clone(text), bytes.Repeat([]byte{'\n'}, int(rest))...)); err != nil {
			return err
		}
		return f.Sync()
	}()
	return errors.Join(err, f.Close())
}

// exchange gives the file the spare's text and the spare the file's. A file system that cannot
// have two names changed at once has no spare until keepRoom makes it anew.
func (s spared) exchange() error {
	err := unix.Renameat2(unix.AT_FDCWD, s.spare(), unix.AT_FDCWD, s.file, unix.RENAME_EXCHANGE)
	if err == nil {
		return nil
	}
	return os.Rename(s.spare(), s.file)
}

// keepRoom makes the spare as large as the text may be that follows one of a given length, and only
// looks where it is. What is written are bytes, not a hole.
func (s spared) keepRoom(length int) error {
	want := int64(max(sparedSize, 2*length))
	info, err := os.Lstat(s.spare())
	if err == nil && info.Size() >= want {
		return nil
	}
	// Whose name is on disk is not known before this.
	if err := syncDir(s.file); err != nil {
		return err
	}
	f, err := os.OpenFile(s.spare(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Repeat([]byte{'\n'}, int(want)))
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir brings to disk which files are in the directory of one.
func syncDir(file string) error {
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
