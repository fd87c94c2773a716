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
	// leastFree is the share of a volume that has to be free for binary logs to be held back,
	// and leastRoom how many bytes of a large one are enough.
	leastFree, leastRoom = 0.1, 8 << 30
	// direFree and direRoom are what has to be free for what is not archived to be kept.
	direFree, direRoom = 0.05, 2 << 30
	// fresh is how old a log is that a replica may still need which is behind, or away for a
	// moment, and has nothing left of what it received.
	fresh = 10 * time.Minute
)

func hasRoom(free, size uint64, share float64, enough uint64) bool {
	return float64(free) >= min(share*float64(size), float64(enough))
}

// HoldsBack reports whether logs that are not archived are kept beyond their time: as long as
// the volume has room. Writes come first. Both are bytes; nothing is known of a size of 0.
func HoldsBack(free, size uint64) bool {
	return size > 0 && hasRoom(free, size, leastFree, leastRoom)
}

// MakeRoom tells up to which of a server's binary logs, oldest first and without it, they go
// before their time because the volume is nearly full; "" is none of them. First go those
// that are archived, as all before needed are, and not fresh, until enough is free; in dire
// need the others, too. What is not archived leaves a gap, and goes only if that helps. The
// last log is written to. Nothing goes unless all replicas are attached: one that is away
// would have to be cloned.
func MakeRoom(logs []Log, needed string, attached bool, free, size uint64, now time.Time) (to string, gap bool) {
	if !attached || size == 0 || HoldsBack(free, size) {
		return "", false
	}
	archived := max(slices.IndexFunc(logs, func(l Log) bool { return l.Name == needed }), 0)
	helps := hasRoom(free+sizeOf(logs), size, direFree, direRoom)
	for i := range len(logs) - 1 {
		isArchived := i < archived
		enough := hasRoom(free, size, direFree, direRoom)
		if isArchived && now.Sub(logs[i].Written) >= fresh {
			enough = hasRoom(free, size, leastFree, leastRoom)
		}
		if enough || !isArchived && !helps {
			break
		}
		free += logs[i].Size
		to, gap = logs[i+1].Name, !isArchived
	}
	return to, gap
}

// sizeOf is how many bytes all logs take but the last, which stays.
func sizeOf(logs []Log) (sum uint64) {
	for i := range len(logs) - 1 {
		sum += logs[i].Size
	}
	return sum
}
