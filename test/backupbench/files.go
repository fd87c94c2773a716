package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// bytesFlag is a number of bytes: MiB and GiB may follow it.
type bytesFlag int64

func (b *bytesFlag) String() string { return b.short() }

func (b bytesFlag) short() string {
	switch {
	case b > 0 && b%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", b>>30)
	case b > 0 && b%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", b>>20)
	}
	return strconv.FormatInt(int64(b), 10)
}

// Set reads a number of bytes, which MiB or GiB may follow. It must be more than 0.
func (b *bytesFlag) Set(text string) error {
	shift := 0
	for unit, by := range map[string]int{"MiB": 20, "GiB": 30} {
		if number, found := strings.CutSuffix(text, unit); found {
			text, shift = number, by
		}
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if shift == 0 {
		n, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil || n <= 0 {
		return fmt.Errorf("%q is no size as 5GiB", text)
	}
	*b = bytesFlag(n << shift)
	return nil
}

// readAll reads all that is below a directory, so that it is in the page cache.
func readAll(dir string) error {
	return eachFile(dir, func(path string) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		_, err = io.Copy(io.Discard, f)
		return err
	})
}

// sizeOf is how much is below a directory.
func sizeOf(dir string) (n int64, err error) {
	err = eachFile(dir, func(path string) error {
		info, err := os.Stat(path)
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

func eachFile(dir string, visit func(path string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return visit(path)
	})
}
