package archive

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Log is one of a server's binary logs.
type Log struct {
	Name string
	// Written is when it was last written to.
	Written time.Time
	// Size in bytes.
	Size uint64
	// Began is what the server had executed when it began the log; MakeRoom alone asks for it.
	Began core.Fact[gtid.Set]
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
	// direFree and direRoom are what has to be free for what is not archived, or what others may need, to be kept.
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

// Room is what goes to make room.
type Room struct {
	// To is the log up to which logs go, and which stays; "" when none goes.
	To string
	// Gap: some of them are not archived.
	Gap bool
	// Needed: another instance may need some of them, and has to be given a copy of all data if it does.
	Needed bool
}

// MakeRoom tells which of a server's binary logs, oldest first, go before their time because the volume is nearly
// full. First go those that are archived, as all before needed are, and that no other instance needs, until enough is
// free; in dire need also those that others may need, where one that lacks them can be given a copy. What is not
// archived leaves a gap: it goes last, only if that helps, and only while no other instance is away. The last log is
// written to.
func MakeRoom(logs []Log, needed string, others Others, free, size uint64, now time.Time) (out Room) {
	if size == 0 || HoldsBack(free, size) {
		return Room{}
	}
	archived := max(slices.IndexFunc(logs, func(l Log) bool { return l.Name == needed }), 0)
	helps := hasRoom(free+sizeOf(logs), size, direFree, direRoom)
	for i := range len(logs) - 1 {
		isDire, isArchived := !hasRoom(free, size, direFree, direRoom), i < archived
		isHeld := others.hold(logs[0], logs[i+1])
		mayBeNeeded := others.mayNeed(isHeld, now.Sub(logs[i].Written))
		switch {
		case isArchived && !mayBeNeeded:
			if hasRoom(free, size, leastFree, leastRoom) {
				return out
			}
		case isDire && isArchived && others.mayLack():
		case isDire && !isArchived && helps && others.mayMissForGood(isHeld):
		default:
			return out
		}
		free += logs[i].Size
		out = Room{To: logs[i+1].Name, Gap: !isArchived, Needed: out.Needed || mayBeNeeded}
	}
	return out
}

// sizeOf is how many bytes all logs take but the last, which stays.
func sizeOf(logs []Log) (sum uint64) {
	for i := range len(logs) - 1 {
		sum += logs[i].Size
	}
	return sum
}
