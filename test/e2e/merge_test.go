//go:build e2e

package e2e

import (
	"os"
	"time"

	"cnmsql.co/api/v1alpha1"
)

// smallPartsAreMerged: parts that have lain in the store for two hours are merged after a backup,
// and their objects go after the next one; a restore from the backup before them has all that they
// hold. The store's clock is the times of its files.
func (b *backedUp) smallPartsAreMerged() {
	b.backUp("before-parts", "")
	b.completes("before-parts")
	l := b.startWriting()
	l.ackedAfter(time.Now().Add(25*time.Second), time.Minute)
	l.stopAndLoseNothing()
	executed := b.archivesAll()
	wanted := b.checksums(b.open("rw"))
	b.sql("INSERT INTO app.latest VALUES ()") // so that a restore to executed begins with that backup
	b.archivesAll()

	b.age("log/*/*.binlog.zst")
	merged := b.merges("merges")
	if merged.MergedParts < 16 || merged.Bundles == 0 || merged.RemovedObjects != 0 {
		b.t.Errorf("parts of 25 seconds, one each second, are two hours old: %+v", merged)
	}
	b.age("log/*/*.bundle.zst")
	before := len(b.below("log/*/*.binlog.zst"))
	removed := b.merges("removes")
	if removed.RemovedObjects < merged.MergedParts {
		b.t.Errorf("%d parts were merged two hours ago: %+v", merged.MergedParts, removed)
	}
	b.t.Logf("%d parts were merged into %d bundles; %d objects of parts became %d", merged.MergedParts, merged.Bundles,
		before, len(b.below("log/*/*.binlog.zst")))
	target := ", recoveryTarget: {targetGTID: '" + executed + "'}"
	b.holds(b.restored("of-bundles", b.store.Encrypted(), target), executed, wanted)
}

// age makes objects two hours older.
func (b *backedUp) age(pattern string) {
	b.t.Helper()
	then := time.Now().Add(-2 * time.Hour)
	for _, file := range b.below(pattern) {
		if err := os.Chtimes(file, then, then); err != nil {
			b.t.Fatal(err)
		}
	}
}

// merges takes a backup, and waits until its Job has merged what was to be merged.
func (b *backedUp) merges(name string) *v1alpha1.BackupMerging {
	b.t.Helper()
	b.backUp(name, "")
	b.completes(name)
	is := b.awaits(name, time.Minute, func(s *v1alpha1.BackupStatus) bool { return s.Merging != nil }).Merging
	if is.Held != nil {
		b.t.Errorf("less was merged than could be: %+v", is.Held)
	}
	return is
}
