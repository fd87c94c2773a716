//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"slices"
	"time"

	"cnmsql.co/internal/core/archive"
)

// archivedInTime: under load, the oldest transaction that is not archived yet becomes hardly older
// than targetRPOSeconds, which is 1. How old it was is seen for each part when it was there: by
// the time of its object, and that of its first commit. All clocks are this machine's.
func (b *backedUp) archivedInTime() {
	before := b.below("log/*/*.binlog.zst*")
	l := b.startWritingOn(16)
	begun := time.Now()
	l.ackedAfter(begun.Add(30*time.Second), time.Minute)
	l.stopAndLoseNothing()
	var ages []time.Duration
	for _, name := range b.below("log/*/*.binlog.zst*") {
		if slices.Contains(before, name) {
			continue
		}
		if part, written := b.partOf(name); part.Transactions > 0 && part.First.After(begun) {
			ages = append(ages, written.Sub(part.First))
		}
	}
	if len(ages) < 10 {
		b.t.Fatalf("in half a minute there were %d parts: %v", len(ages), ages)
	}
	slices.Sort(ages)
	median, most := ages[len(ages)/2], ages[len(ages)-1]
	b.t.Logf("%d parts; the oldest transaction that was not archived was %s old in the median, %s at most", len(ages),
		median.Round(time.Millisecond), most.Round(time.Millisecond))
	if median > 1500*time.Millisecond || most > 3*time.Second {
		b.t.Errorf("with targetRPOSeconds: 1, %s in the median is more than 1.5 s, or %s more than 3 s", median, most)
	}
}

// partOf reads what is known of a part, and when it was written.
func (b *backedUp) partOf(file string) (archive.Part, time.Time) {
	b.t.Helper()
	f, err := os.Open(file)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil {
		_, err = f.Seek(8, 0) // the head of a frame of zstd that is skipped
	}
	var part archive.Part
	if err == nil {
		err = json.NewDecoder(f).Decode(&part)
	}
	if err != nil {
		b.t.Fatalf("reading %s: %v", file, err)
	}
	return part, info.ModTime()
}
