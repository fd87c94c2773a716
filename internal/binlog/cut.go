package binlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cnmsql.co/internal/gtid"
)

// Last returns the path of the last binary log that an index names. An index without any is an
// error.
func Last(index string) (string, error) {
	logs, err := All(index)
	if err != nil {
		return "", err
	}
	return logs[len(logs)-1], nil
}

// All returns the paths of the binary logs that an index names, the oldest first and at
// least one; relative names are relative to the index's directory.
func All(index string) ([]string, error) {
	text, err := os.ReadFile(index)
	if err != nil {
		return nil, fmt.Errorf("reading the index of binary logs: %w", err)
	}
	var logs []string
	for line := range strings.Lines(string(text)) {
		log := strings.TrimSpace(line)
		if log == "" {
			continue
		}
		if !filepath.IsAbs(log) {
			log = filepath.Join(filepath.Dir(index), log)
		}
		logs = append(logs, log)
	}
	if len(logs) == 0 {
		return nil, fmt.Errorf("the index %s names no binary log", index)
	}
	return logs, nil
}

// CutTail takes the transactions that are not in held off the end of a binary
// log, after a copy of them was made durable in keep. The server that owns the
// log must not run. Without such transactions nothing is done and kept is "".
func CutTail(log string, held gtid.Set, keep string) (tail Tail, kept string, err error) {
	f, err := os.OpenFile(log, os.O_RDWR, 0)
	if err != nil {
		return Tail{}, "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if tail, err = findTail(f, held); err != nil || tail.Offset == 0 {
		return tail, "", err
	}
	kept = filepath.Join(keep, fmt.Sprintf("%s.from-%d", filepath.Base(log), tail.Offset))
	if err := keepTail(f, tail.Offset, kept); err != nil {
		return tail, "", err
	}
	if err := f.Truncate(tail.Offset); err != nil {
		return tail, kept, err
	}
	return tail, kept, f.Sync()
}

func keepTail(log *os.File, offset int64, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return fmt.Errorf("keeping the tail of %s: %w", log.Name(), err)
	}
	_, err = io.Copy(out, io.NewSectionReader(log, offset, 1<<62))
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("keeping the tail of %s: %w", log.Name(), err)
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
