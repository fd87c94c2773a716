// Package machine tells on what a benchmark runs: for what stands beside its figures.
package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// Describe tells of the machine what can be known of it.
func Describe() string {
	return fmt.Sprintf("%d cores (%s), %s GiB of memory, Linux %s",
		runtime.NumCPU(), Field("/proc/cpuinfo", "model name"),
		gib(Field("/proc/meminfo", "MemTotal")), firstLine("/proc/sys/kernel/osrelease"))
}

func gib(kib string) string {
	n, _ := strconv.ParseFloat(strings.TrimSuffix(kib, " kB"), 64)
	return fmt.Sprintf("%.0f", n/(1<<20))
}

// Field of a file of lines with a colon; "" if it has none.
func Field(file, name string) string {
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

// Load is the load average of a minute.
func Load() float64 {
	one, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	n, _ := strconv.ParseFloat(one, 64)
	return n
}

// Commit that is measured, in short.
func Commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "an unknown commit"
	}
	return strings.TrimSpace(string(out))
}
