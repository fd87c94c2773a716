package mysql

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// CopyBrokeOff reports whether a copy of another server's data had begun to replace what is in
// a data directory, and did not end. It is what dataRemoved asks a server that runs: mysqld
// keeps both tables in files, in which a copy has an error until it is complete. An error
// means that the files are there and are not understood.
func CopyBrokeOff(dataDir string) (bool, error) {
	dir := filepath.Join(dataDir, "#clone")
	failure, err := viewNumber(filepath.Join(dir, "#view_status"), 3)
	if err != nil || failure == 0 {
		return false, err
	}
	// The first stage drops the data.
	state, err := viewNumber(filepath.Join(dir, "#view_progress"), 1)
	return state != 0, err
}

// viewNumber reads the first number of a line, the first being 0, of a file in which mysqld
// keeps what it shows of a copy; 0 when there is no file.
func viewNumber(file string, line int) (int, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading what mysqld says of a copy: %w", err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) > line {
		first, _, _ := strings.Cut(lines[line], " ")
		if n, err := strconv.Atoi(first); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("reading what mysqld says of a copy: %s is not understood: %q", filepath.Base(file), text)
}
