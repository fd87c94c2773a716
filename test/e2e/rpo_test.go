//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"slices"
	"time"

	"cnmsql.co/internal/core/archive"
)

// archivedInTime: under load, the oldest transaction that is not archived yet is a second old in
// the median over the time, as targetRPOSeconds says, and never three; in the end all is archived.
// All clocks are this machine's.
func (b *backedUp) archivedInTime() {
	before := b.below("log/*/*.binlog.zst*")
	l := b.startWritingOn(16)
	begun := time.Now()
	l.ackedAfter(begun.Add(30*time.Second), time.Minute)
	l.stopAndLoseNothing()
	b.archivesAll() // the part that ends a stall measures it, and one that does not end fails here
	var parts []archivedPart
	for _, name := range b.below("log/*/*.binlog.zst*") {
		if slices.Contains(before, name) {
			continue
		}
		if part, written := b.partOf(name); part.Transactions > 0 && part.First.After(begun) {
			parts = append(parts, archivedPart{part.First, written})
		}
	}
	if len(parts) < 10 {
		b.t.Fatalf("in half a minute there were %d parts: %v", len(parts), parts)
	}
	ages := notArchived(parts)
	median, most := ages[len(ages)/2], ages[len(ages)-1]
	b.t.Logf("%d parts; the oldest transaction that was not archived was %s old in the median, %s at most", len(parts),
		median.Round(time.Millisecond), most.Round(time.Millisecond))
	if median > time.Second || most > 3*time.Second {
		b.t.Errorf("with targetRPOSeconds: 1, %s in the median is more than 1 s, or %s more than 3 s", median, most)
	}
}

// archivedPart is when the first transaction of a part was committed, and when the part was there.
type archivedPart struct{ first, written time.Time }

// notArchived is how old the oldest transaction was that was not archived, at each millisecond
// between the first of these parts and the last, from the youngest to the oldest.
func notArchived(parts []archivedPart) (ages []time.Duration) {
	slices.SortFunc(parts, func(a, b archivedPart) int { return a.written.Compare(b.written) })
	for i, p := range parts[1:] {
		for at := parts[i].written; at.Before(p.written); at = at.Add(time.Millisecond) {
			ages = append(ages, max(0, at.Sub(p.first)))
		}
	}
	slices.Sort(ages)
	return ages
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
