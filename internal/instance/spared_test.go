package instance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// formerRecord is a record as releases wrote it that kept no room.
const formerRecord = "{\n  \"clusterUID\": \"uid-1\",\n  \"dataState\": \"Populated\",\n  \"fencedBelow\": 7\n}\n"

func TestWhatIsRememberedChangesOnAFullVolume(t *testing.T) {
	for name, former := range map[string]string{"new": "", "of a former release": formerRecord} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mountSmall(t, dir, "1m")
			if former != "" {
				must(t, os.WriteFile(filepath.Join(dir, "state.json"), []byte(former), 0o600))
			}
			m, err := lockVolume(t.Context(), dir)
			must(t, err)
			if former == "" {
				must(t, m.change(func(r *volumeRecord) { r.NoWritesBelow, r.Stage = 7, stagePopulated }))
				must(t, m.keepRoom())
			}
			fillUp(t, dir)
			for epoch := int64(8); epoch < 20; epoch++ {
				must(t, m.change(func(r *volumeRecord) { r.NoWritesBelow, r.NoReceivingBelow = epoch, epoch }))
			}
			m.close()
			again, err := lockVolume(t.Context(), dir)
			must(t, err)
			defer again.close()
			if r := again.get(); r.NoWritesBelow != 19 || r.NoReceivingBelow != 19 || r.Stage != stagePopulated {
				t.Errorf("it remembers %+v", r)
			}
		})
	}
}

// A crash may leave any part of a text in the spare.
func TestATornSpareIsNoRecord(t *testing.T) {
	dir := t.TempDir()
	m, err := lockVolume(t.Context(), dir)
	must(t, err)
	must(t, m.change(func(r *volumeRecord) { r.NoWritesBelow = 7 }))
	must(t, m.change(func(r *volumeRecord) { r.NoWritesBelow = 8 }))
	m.close()
	for _, torn := range []string{"", `{"fencedBelow": 9`, `{"fencedBelow": 9}`, "\x00\x00"} {
		must(t, os.WriteFile(filepath.Join(dir, "state.json.new"), []byte(torn), 0o600))
		m, err := lockVolume(t.Context(), dir)
		must(t, err)
		if r := m.get(); r.NoWritesBelow != 8 {
			t.Errorf("behind %q it remembers %+v", torn, r)
		}
		must(t, m.change(func(r *volumeRecord) { r.Acks++ }))
		m.close()
	}
}

// What stands under the name is left as it is until its successor does: a crash while the
// successor is written finds it whole.
func TestARecordIsNotWrittenOver(t *testing.T) {
	dir := t.TempDir()
	m, err := lockVolume(t.Context(), dir)
	must(t, err)
	defer m.close()
	for epoch := int64(1); epoch < 9; epoch++ {
		before, err := os.Open(m.file())
		if err == nil {
			text, err := os.ReadFile(m.file())
			must(t, err)
			must(t, m.change(func(r *volumeRecord) { r.NoWritesBelow = epoch }))
			after, err := io.ReadAll(before)
			must(t, err)
			if !bytes.Equal(text, after) {
				t.Fatalf("the record of epoch %d was written over", epoch-1)
			}
			must(t, before.Close())
			continue
		}
		must(t, m.change(func(r *volumeRecord) { r.NoWritesBelow = epoch }))
	}
}

// A later record is shorter, or too long for the spare.
func TestARecordOfAnyLengthIsReadByFormerReleasesToo(t *testing.T) {
	dir := t.TempDir()
	m, err := lockVolume(t.Context(), dir)
	must(t, err)
	defer m.close()
	for _, length := range []int{0, 100, 3 * sparedSize, 10, 5 * sparedSize, 0} {
		base := string(bytes.Repeat([]byte{'x'}, length))
		must(t, m.change(func(r *volumeRecord) { r.TailBase, r.Acks = base, r.Acks+1 }))
		text, err := os.ReadFile(m.file())
		must(t, err)
		var r volumeRecord
		must(t, json.Unmarshal(text, &r)) // as they do
		if r != m.get() || r.TailBase != base {
			t.Errorf("a record of %d bytes is read as %d, acks %d", length, len(r.TailBase), r.Acks)
		}
		must(t, m.keepRoom())
		info, err := os.Stat(m.file() + ".new")
		must(t, err)
		if info.Size() < int64(max(sparedSize, 2*length)) {
			t.Errorf("behind a record of %d bytes there is room for %d", length, info.Size())
		}
	}
}

// A volume that is full when it is locked has no room, and may be given some later, while nothing is
// promised. That it has none is told once, and so is that it has.
func TestRoomIsMadeWhenAFullVolumeHasSomeAgain(t *testing.T) {
	dir := t.TempDir()
	meta := filepath.Join(dir, "meta")
	mountSmall(t, meta, "1m")
	must(t, os.WriteFile(filepath.Join(meta, "state.json"), []byte(formerRecord), 0o600))
	fillUp(t, meta)
	var log lockedBuffer
	told := func(what string) int { return strings.Count(log.String(), what) }
	const fails, ends = "cannot reserve space on the volume", "can reserve space on the volume"
	synctest.Test(t, func(t *testing.T) {
		m := managerIn(dir, &log)
		must(t, m.tryVolume(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); m.keepLatest(ctx) }()
		<-time.After(3500 * time.Millisecond)
		synctest.Wait()
		if told(fails) != 1 || told(ends) != 0 {
			t.Errorf("without room it says %s", log.String())
		}
		must(t, os.Remove(filepath.Join(meta, "filler")))
		<-time.After(2 * time.Second)
		cancel()
		<-over
		if info, err := os.Stat(m.record.file() + ".new"); err != nil || info.Size() < sparedSize {
			t.Errorf("there is no room: %v", err)
		}
		if told(fails) != 1 || told(ends) != 1 {
			t.Errorf("with room it says %s", log.String())
		}
		fillUp(t, meta)
		must(t, m.record.change(func(r *volumeRecord) { r.NoWritesBelow = 8 }))
		m.record.close()
	})
}

// A manager that takes over has a mysqld that may be writable, and nothing fences it yet: it asks nothing
// of a volume that may stall, unless the manager before left it to be read.
func TestWhoTakesOverAsksNothingOfTheVolume(t *testing.T) {
	m := managerIn(t.TempDir(), io.Discard)
	must(t, m.tryVolume(t.Context()))
	meta := m.opt.Dirs.Meta
	must(t, m.record.change(func(r *volumeRecord) { r.NoWritesBelow, r.Stage = 7, stagePopulated }))
	must(t, os.MkdirAll(filepath.Join(m.opt.Dirs.Data, "mysql"), 0o700))
	m.update(func(s *state) { s.volume.data = core.DataPopulated })
	m.setCluster(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", UID: "u-1"}})
	left, _, why := m.seize()
	if why != "" {
		t.Fatal(why)
	}
	m.record.changing.Unlock()
	takesOver := func(about string) *recordFile {
		lock, err := unix.Dup(int(m.record.lock.Fd()))
		must(t, err)
		left.Lock = lock
		heir := managerIn(filepath.Dir(meta), io.Discard)
		must(t, heir.takeOver(left))
		if r := heir.record.get(); r != m.record.get() || heir.record.length != m.record.length {
			t.Errorf("%s: it remembers %+v, of length %d", about, r, heir.record.length)
		}
		if data := heir.dataState(); data != core.DataPopulated {
			t.Errorf("%s: it has data %s", about, data)
		}
		return heir.record
	}
	must(t, os.Rename(meta, meta+".gone")) // whatever is read there, is lacking
	must(t, os.Rename(m.opt.Dirs.Data, m.opt.Dirs.Data+".gone"))
	takesOver("what is handed over").close()
	must(t, os.Rename(meta+".gone", meta))
	must(t, os.Rename(m.opt.Dirs.Data+".gone", m.opt.Dirs.Data))
	left.Volume = nil
	takesOver("what is read").close()
}

// Whoever gave the lock back makes no room: what is there is another manager's.
func TestWhoInheritsAVolumeMakesRoomWhileItHasTheLock(t *testing.T) {
	dir := t.TempDir()
	m, err := lockVolume(t.Context(), dir)
	must(t, err)
	defer m.close()
	must(t, m.change(func(r *volumeRecord) { r.NoWritesBelow = 7 }))
	lock, err := unix.Dup(int(m.lock.Fd()))
	must(t, err)
	heir := inheritVolume(dir, lock)
	heir.inherit(m.get())
	if _, err := os.Stat(m.file() + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it made room: %v", err)
	}
	must(t, heir.keepRoom())
	if _, err := os.Stat(m.file() + ".new"); err != nil {
		t.Errorf("it makes no room later: %v", err)
	}
	heir.close()
	must(t, os.Remove(m.file()+".new"))
	must(t, heir.keepRoom())
	if _, err := os.Stat(m.file() + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is another manager's is written to: %v", err)
	}
}

// The volume may stall between a promise that stands on disk and the room for the next one.
func TestAPromiseIsInForceBeforeRoomIsMadeForTheNext(t *testing.T) {
	dir := t.TempDir()
	m, err := lockVolume(t.Context(), dir)
	must(t, err)
	defer m.close()
	must(t, m.change(func(r *volumeRecord) { r.NoWritesBelow = 7 }))
	if _, err := os.Stat(m.file() + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("room was made before the promise counted: %v", err)
	}
	if below := m.get().NoWritesBelow; below != 7 {
		t.Errorf("it remembers the promise %d", below)
	}
}

// lockedBuffer is read while it is written to.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}
