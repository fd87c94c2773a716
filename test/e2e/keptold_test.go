//go:build e2e

package e2e

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/archive"
)

// whatExpiredGoes takes a backup where two lie that are two days old, with a window of a day: the second
// stays, with which the window begins, the first goes, with its part of the archive, and what nobody
// knows is told and stays. The earliest moment that is promised is restored.
func (b *backedUp) whatExpiredGoes() {
	b.sql("CREATE TABLE app.history (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20))")
	b.writes("first")
	b.backUp("older", "")
	older := b.completes("older")
	b.writes("second")
	b.backUp("old", "")
	old := b.completes("old")
	b.awaits("old", time.Minute, func(s *v1alpha1.BackupStatus) bool { return s.Retention != nil })
	b.growsOld(48 * time.Hour)
	b.writes("third")
	stranger := b.puts("notes.txt")
	parts := b.below("log/*/*.binlog.zst")

	b.backUp("new", "")
	b.completes("new")
	is := b.awaits("new", time.Minute, func(s *v1alpha1.BackupStatus) bool {
		return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionBackupRetention)
	}).Retention
	b.t.Logf("%+v", is)
	if !slices.Contains(is.RemovedBackups, older.BackupID) || slices.Contains(is.RemovedBackups, old.BackupID) ||
		is.Held != nil || is.UnknownObjects != 1 || !slices.Equal(is.UnknownNames, []string{"notes.txt"}) {
		b.t.Errorf("%s should have gone and %s stayed, and notes.txt be told: %+v", older.BackupID, old.BackupID, is)
	}
	b.areGone(older, parts, int(is.RemovedParts))
	if len(b.stored(old.BackupID, "manifest.json")) != 1 || len(b.below(stranger)) != 1 {
		b.t.Errorf("%s or %s is gone", old.BackupID, stranger)
	}
	b.earliestIsRestored("first,second", is.KeptSince.Time)
	if err := os.Remove(b.below(stranger)[0]); err != nil {
		b.t.Fatal(err)
	}
}

// writes notes what is written in app.history, and has it archived.
func (b *backedUp) writes(what string) {
	b.t.Helper()
	b.sql("INSERT INTO app.history (what) VALUES ('" + what + "')")
	b.archivesAll()
}

// puts has the store keep an object that is not cnmsql's.
func (b *backedUp) puts(name string) string {
	b.t.Helper()
	dir := filepath.Dir(b.below("identity.json")[0])
	if err := os.WriteFile(filepath.Join(dir, name), []byte("somebody's"), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return name
}

// areGone looks whether nothing of a backup is left, and its Backup says so, and whether so many parts are
// gone of those that there were of the archive.
func (b *backedUp) areGone(of *v1alpha1.BackupStatus, parts []string, wanted int) {
	b.t.Helper()
	if left := b.stored(of.BackupID, "*"); len(left) > 0 {
		b.t.Errorf("still in the store: %v", left)
	}
	left := b.below("log/*/*.binlog.zst")
	gone := slices.DeleteFunc(parts, func(name string) bool { return slices.Contains(left, name) })
	if len(gone) != wanted || wanted == 0 {
		b.t.Errorf("%d parts are said to be removed, and these are: %v", wanted, gone)
	}
	b.eventSays(string(core.ReasonExpired))
	b.plugin([]string{"backup", "list", b.key.Name}, "Completed, Expired")
	out, err := b.tryPlugin("restore", b.key.Name, "--name", "too-late", "--backup", "older")
	if err == nil {
		b.t.Error("a restore from what has expired is not refused")
	}
	b.says(out, "not in the store any more", "backup list "+b.key.Name)
}

// earliestIsRestored restores the moment with which the window begins, by its Backups and by what retention
// says, and looks whether that is there which was then.
func (b *backedUp) earliestIsRestored(wanted string, since time.Time) {
	b.t.Helper()
	var list struct{ Window struct{ From *time.Time } }
	out := b.plugin([]string{"backup", "list", b.key.Name, "-o", "json"})
	if err := json.Unmarshal([]byte(out), &list); err != nil || list.Window.From == nil {
		b.t.Fatalf("there is no window: %v", err)
	}
	for at, name := range map[time.Time]string{list.Window.From.UTC(): "to-window", since.UTC(): "to-since"} {
		in := b.named(name)
		b.plugin([]string{"restore", b.key.Name, "--name", in.key.Name, "--to", at.Format(time.RFC3339Nano),
			"--apply"}, in.key.Name)
		in.healthy(4 * time.Minute)
		what := b.ask(in.open("rw"), "SELECT GROUP_CONCAT(what ORDER BY id) FROM app.history")
		b.t.Logf("restored to %s: %s", at, what)
		if what != wanted {
			b.t.Errorf("it should have %s", wanted)
		}
		b.remove(in)
	}
}

// growsOld makes all backups, and all that is archived, that much older: by what they tell of themselves,
// by the times of the store, and by what Kubernetes tells of them. Nothing is written meanwhile.
func (b *backedUp) growsOld(by time.Duration) {
	b.t.Helper()
	for pattern, rewritten := range map[string]func([]byte, time.Duration) ([]byte, error){
		"base/*/manifest.json": olderManifest, "log/*/*.binlog.zst": olderPart,
	} {
		for _, name := range b.below(pattern) {
			object, err := os.ReadFile(name)
			if err == nil {
				object, err = rewritten(object, by)
			}
			if err != nil {
				b.t.Fatalf("%s: %v", name, err)
			}
			if err := os.WriteFile(name, object, 0o644); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	then := time.Now().Add(-by)
	for _, name := range append(b.below("base/*/*"), b.below("log/*/*")...) {
		if err := os.Chtimes(name, then, then); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, name := range b.below("log/*/*.index.zst") { // what it tells is of before
		if err := os.Remove(name); err != nil {
			b.t.Fatal(err)
		}
	}
	b.backupsGrowOld(by)
	since := b.cluster().Status.ContinuousArchiving.CompleteSince.Add(-by).UTC().Format(time.RFC3339)
	b.kubectl("-n", b.key.Namespace, "patch", "cluster", b.key.Name, "--subresource=status", "--type=merge", "-p",
		fmt.Sprintf(`{"status":{"continuousArchiving":{"completeSince":%q}}}`, since))
}

func (b *backedUp) backupsGrowOld(by time.Duration) {
	b.t.Helper()
	var all v1alpha1.BackupList
	if err := bed.Client.List(b.ctx, &all, client.InNamespace(b.key.Namespace)); err != nil {
		b.t.Fatal(err)
	}
	for _, one := range all.Items {
		before := one.DeepCopy()
		for _, at := range []*metav1.Time{one.Status.StartedAt, one.Status.StoppedAt} {
			if at != nil {
				at.Time = at.Add(-by)
			}
		}
		if err := bed.Client.Status().Patch(b.ctx, &one, client.MergeFrom(before)); err != nil {
			b.t.Fatal(err)
		}
	}
}

func olderManifest(object []byte, by time.Duration) ([]byte, error) {
	m, err := backup.Parse(object)
	if err != nil {
		return nil, err
	}
	for _, at := range []*time.Time{&m.Begin, &m.Point, &m.End} {
		*at = at.Add(-by)
	}
	return m.Encode()
}

// olderPart changes the frame of zstd with which a part begins: what is known of it, and the sum of that.
func olderPart(object []byte, by time.Duration) ([]byte, error) {
	const head = 8
	end := head + int(binary.LittleEndian.Uint32(object[4:]))
	text := object[head : end-hex.EncodedLen(sha256.Size)]
	var part archive.Part
	if err := json.Unmarshal(text, &part); err != nil {
		return nil, err
	}
	if part.First.IsZero() {
		return nil, errors.New("it does not tell of when it is")
	}
	part.First, part.Last = part.First.Add(-by), part.Last.Add(-by)
	text, err := json.Marshal(part)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append(text, '\n'))
	text = hex.AppendEncode(append(text, '\n'), sum[:])
	out := binary.LittleEndian.AppendUint32(slices.Clone(object[:4]), uint32(len(text)))
	return slices.Concat(out, text, object[end:]), nil
}
