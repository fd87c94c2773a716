package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// machine on which all of it is measured, as far as it can be known.
func machine() string {
	return fmt.Sprintf("%d cores (%s), %s GiB of memory, Linux %s", runtime.NumCPU(), field("/proc/cpuinfo", "model name"),
		gib(field("/proc/meminfo", "MemTotal")), firstLine("/proc/sys/kernel/osrelease"))
}

func gib(kib string) string {
	n, _ := strconv.ParseFloat(strings.TrimSuffix(kib, " kB"), 64)
	return fmt.Sprintf("%.0f", n/(1<<20))
}

// field of a file of lines with a colon; "" if it has none.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func firstLine(file string) string {
	text, _ := os.ReadFile(file)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// load average of a minute.
func load() float64 {
	one, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	n, _ := strconv.ParseFloat(one, 64)
	return n
}

func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "an unknown commit"
	}
	return strings.TrimSpace(string(out))
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
