package process

import (
	"fmt"
	"os"
	"strings"
)

// identity tells one process from any other, of this boot or another.
type identity struct {
	pid   int
	start string // clock ticks after boot
	boot  string
}

func (i identity) String() string { return fmt.Sprintf("%d %s %s", i.pid, i.start, i.boot) }

func parseIdentity(s string) (identity, error) {
	var i identity
	_, err := fmt.Sscan(s, &i.pid, &i.start, &i.boot)
	return i, err
}

func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}

// parseStat returns state and start time from /proc/<pid>/stat. The second field
// is the program's name in parentheses, in which anything may occur.
func parseStat(stat string) (state, start string, ok bool) {
	end := strings.LastIndex(stat, ")")
	if end < 0 {
		return "", "", false
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 20 {
		return "", "", false
	}
	return fields[0], fields[19], true
}

// observe returns the identity of a running process. A zombie does not run.
func observe(pid int) (identity, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return identity{}, false
	}
	state, start, ok := parseStat(string(data))
	if !ok || state == "Z" || state == "X" {
		return identity{}, false
	}
	return identity{pid: pid, start: start, boot: bootID()}, true
}
