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

// leastFree is the share of a volume that has to be free for binary logs to be held back.
const leastFree = 0.1

// HoldsBack tells whether logs that are not archived are kept beyond their time: as long as
// the volume has room. Writes come first.
func HoldsBack(free, size uint64) bool {
	return size > 0 && float64(free) >= leastFree*float64(size)
}
