package instance

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
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
		info, err := os.Stat(m.file() + ".new")
		must(t, err)
		if info.Size() < int64(max(sparedSize, 2*length)) {
			t.Errorf("behind a record of %d bytes there is room for %d", length, info.Size())
		}
	}
}
