package archive

import (
	"slices"
	"time"
)

// Log is one of a server's binary logs.
type Log struct {
	Name string
	// Written is when it was last written to.
	Written time.Time
	// Size in bytes.
	Size uint64
}

// Purge tells up to which of a server's binary logs, oldest first and without it, they may
// go: they are archived, as all before needed are, and have expired. "" is none of them.
func Purge(logs []Log, needed string, expire time.Duration, now time.Time) (to string) {
	archived := slices.IndexFunc(logs, func(l Log) bool { return l.Name == needed })
	if archived < 0 || expire <= 0 {
		return "" // nobody knows what is archived; or logs never expire
	}
	young := slices.IndexFunc(logs[:archived], func(l Log) bool { return now.Sub(l.Written) < expire })
	switch {
	case young == 0 || archived == 0:
		return ""
	case young > 0:
		return logs[young].Name
	}
	return needed
}

const (
	// leastFree is the share of a volume that has to be free for binary logs to be held back.
	leastFree = 0.1
	// direFree is the share below which what is not archived goes, too.
	direFree = 0.05
)

// HoldsBack tells whether logs that are not archived are kept beyond their time: as long as
// the volume has room. Writes come first.
func HoldsBack(free, size uint64) bool {
	return size > 0 && float64(free) >= leastFree*float64(size)
}

// MakeRoom tells up to which of a server's binary logs, oldest first and without it, they go
// before their time because the volume is nearly full; "" is none of them. First go those
// that are archived, as all before needed are, until enough is free; in dire need those that
// are not, which leaves a gap. The last log is written to. Nothing goes unless all replicas
// are attached: they have what they read, and one that is away would have to be cloned.
func MakeRoom(logs []Log, needed string, attached bool, free, size uint64) (to string, gap bool) {
	if !attached || size == 0 || HoldsBack(free, size) {
		return "", false
	}
	archived := max(slices.IndexFunc(logs, func(l Log) bool { return l.Name == needed }), 0)
	for i := range len(logs) - 1 {
		enough := leastFree
		if i >= archived {
			enough = direFree
		}
		if float64(free) >= enough*float64(size) {
			break
		}
		free += logs[i].Size
		to, gap = logs[i+1].Name, i >= archived
	}
	return to, gap
}
