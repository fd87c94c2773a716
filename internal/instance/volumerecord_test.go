package instance

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

func TestAPromiseSurvivesTheManager(t *testing.T) {
	dir := t.TempDir()
	m, err := lockVolume(context.Background(), dir)
	must(t, err)
	must(t, m.change(func(r *volumeRecord) { r.NoWritesBelow, r.Stage = 7, stagePopulated }))
	m.close()
	again, err := lockVolume(context.Background(), dir)
	must(t, err)
	defer again.close()
	if r := again.get(); r.NoWritesBelow != 7 || r.Stage != stagePopulated {
		t.Errorf("it remembers %+v", r)
	}
}

// An empty volume becomes the Cluster's when that is seen, and what its record says is
// forgotten: a promise that was given before would be broken.
func TestNothingIsPromisedForAVolumeThatIsNobodysYet(t *testing.T) {
	dir := t.TempDir()
	m := newManager(Options{Cluster: "db", Instance: "db-1", Log: io.Discard, Dirs: Dirs{Data: dir + "/data",
		Meta: dir + "/meta"}}.withDefaults())
	must(t, m.tryVolume(t.Context()))
	for _, o := range []control.Order{control.ReceivePromise{Epoch: 3}, control.Demote{Epoch: 3}} {
		var no *control.Refusal
		if err := m.admit(o); !errors.As(err, &no) || no.Reason != "ClusterUnknown" {
			t.Errorf("%s before the Cluster was seen: %v", o.Verb(), err)
		}
	}
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "u-1"}}
	m.setCluster(c)
	must(t, m.admit(control.ReceivePromise{Epoch: 3}))
	must(t, m.record.change(func(r *volumeRecord) { r.NoReceivingBelow = 3 }))
	m.setCluster(c)
	if r := m.record.get(); r.NoReceivingBelow != 3 || r.ClusterUID != "u-1" {
		t.Errorf("it remembers %+v", r)
	}
	m.record.close()
}

// A volume remembers promises and epochs of another Cluster. They are forgotten when it changes hands, and from then
// on nobody is told that they are kept; what is promised since is told.
func TestAVolumeThatChangesHandsKeepsNoPromiseOfBefore(t *testing.T) {
	dir := t.TempDir()
	m := newManager(Options{Cluster: "db", Instance: "db-1", Log: io.Discard, Dirs: Dirs{Data: dir + "/data",
		Meta: dir + "/meta"}}.withDefaults())
	m.lease = &lease{}
	before, err := lockVolume(t.Context(), dir+"/meta")
	must(t, err)
	must(t, before.change(func(r *volumeRecord) {
		r.ClusterUID, r.Instance, r.NoReceivingBelow, r.NoWritesBelow = "u-0", "db-1", 5, 7
	}))
	before.close()
	must(t, m.tryVolume(t.Context()))
	defer m.record.close()
	if s, _ := m.snapshot(time.Now()); !s.Report.Withholds(5) || s.Report.SeenEpoch != 7 {
		t.Errorf("before the Cluster is known it says %+v", s.Report)
	}
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "u-1"}}
	c.Status.PrimaryEpoch = 1
	m.setCluster(c)
	if s, _ := m.snapshot(time.Now()); s.Report.Withheld != nil || s.Report.SeenEpoch != 1 {
		t.Errorf("a promise of before is told: %+v, and epoch %d was seen", s.Report.Withheld, s.Report.SeenEpoch)
	}
	must(t, m.admit(control.ReceivePromise{Epoch: 2}))
	must(t, m.record.change(func(r *volumeRecord) { r.NoReceivingBelow = 2 }))
	m.noteWithheld(2)
	m.setCluster(c)
	if s, _ := m.snapshot(time.Now()); !s.Report.Withholds(2) || s.Report.SeenEpoch != 2 {
		t.Errorf("a promise of now is not told: %+v", s.Report)
	}
	must(t, m.record.change(func(r *volumeRecord) { r.NoReceivingBelow = 1 }))
	if s, _ := m.snapshot(time.Now()); s.Report.Withheld != nil {
		t.Errorf("it tells of a promise that its volume does not remember: %+v", s.Report.Withheld)
	}
}

func TestALockedVolumeIsWaitedForAndTakenAtOnce(t *testing.T) {
	dir := t.TempDir()
	first, err := lockVolume(context.Background(), dir)
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
	defer cancel()
	if _, err := lockVolume(ctx, dir); err == nil {
		t.Fatal("two hold the lock")
	}
	first.close()
	second, err := lockVolume(context.Background(), dir)
	must(t, err)
	second.close()
}

// A manager was killed when it had exchanged the names of both files, before that was on disk. Whoever reads the
// new text brings it there first, and has no volume where that fails.
func TestWhatIsRememberedIsOnDiskBeforeItIsTold(t *testing.T) {
	dir := t.TempDir()
	synced := []string{}
	sync := func(file string) error { synced = append(synced, file); return nil }
	m, err := lockAndSync(t.Context(), dir, sync)
	must(t, err)
	m.close()
	if len(synced) != 1 || synced[0] != m.file() {
		t.Errorf("it has synced the directories of %q", synced)
	}
	fails := func(string) error { return unix.EIO }
	if _, err := lockAndSync(t.Context(), dir, fails); !errors.Is(err, unix.EIO) {
		t.Errorf("where that fails it says %v", err)
	}
	m, err = lockVolume(t.Context(), dir) // which is free
	must(t, err)
	m.close()
}

func TestADamagedMemoryIsNotTakenForAnEmptyOne(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "state.json"), []byte(`{"fencedBelow": 7`), 0o600))
	if _, err := lockVolume(context.Background(), dir); err == nil {
		t.Error("a promise was forgotten in silence")
	}
}

func TestWhatTheVolumeHolds(t *testing.T) {
	for _, test := range []struct {
		stage   stage
		files   bool
		want    core.DataState
		foreign bool
	}{
		{stageNone, false, core.DataEmpty, false},
		{stageNone, true, core.DataUnknown, true}, // nobody remembers having made it
		{stageInitializing, true, core.DataEmpty, false},
		{stageBootstrapping, true, core.DataEmpty, false},
		{stageScratch, true, core.DataScratch, false},
		{stagePopulated, true, core.DataPopulated, false},
		{stagePopulated, false, core.DataEmpty, false}, // somebody has removed it
	} {
		data := t.TempDir()
		if test.files {
			must(t, os.WriteFile(filepath.Join(data, "ibdata1"), nil, 0o600))
		}
		m := &recordFile{now: volumeRecord{Stage: test.stage}}
		if got, foreign, err := m.dataState(data); got != test.want || foreign != test.foreign || err != nil {
			t.Errorf("%q with files %t: %q, foreign %t, %v", test.stage, test.files, got, foreign, err)
		}
	}
}

func TestADataDirectoryThatCannotBeReadIsNotAnEmptyOne(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	must(t, os.WriteFile(data, nil, 0o600)) // reading it fails, and not because there is none
	m := &recordFile{now: volumeRecord{Stage: stagePopulated}}
	if got, _, err := m.dataState(data); err == nil || got != core.DataUnknown {
		t.Errorf("it says %q, %v", got, err)
	}
	held := withFakeServer(t)
	held.record, held.maker.dirs.Data = m, data
	if err := held.maker.makeDataDir(t.Context(), nil); err == nil {
		t.Error("data that could not be read was made again")
	}
}

// TestAVolumeThatCannotBeUsedIsTriedAgain covers each place where an I/O error
// ends an attempt.
func TestAVolumeThatCannotBeUsedIsTriedAgain(t *testing.T) {
	for name, breaks := range map[string]func(d Dirs) (mend func()){
		"its lock cannot be opened": func(d Dirs) func() {
			lock := filepath.Join(d.Meta, "lock")
			must(t, os.MkdirAll(lock, 0o755))
			return func() { must(t, os.Remove(lock)) }
		},
		"what is remembered cannot be read": func(d Dirs) func() {
			file := filepath.Join(d.Meta, "state.json")
			must(t, os.MkdirAll(file, 0o755))
			return func() { must(t, os.Remove(file)) }
		},
		"the data cannot be read": func(d Dirs) func() {
			must(t, os.WriteFile(d.Data, nil, 0o600))
			return func() { must(t, os.Remove(d.Data)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := withFakeServer(t)
			m.record, m.opt.Dirs.Meta = nil, filepath.Join(t.TempDir(), "cnmsql")
			mend := breaks(m.opt.Dirs)
			done := make(chan bool, 1)
			go func() { done <- m.takeVolume(t.Context()) }()
			for get(m, func(s *state) bool { return s.mysqld.problem == nil }) {
				<-time.After(time.Millisecond)
			}
			if d := agent.Decide(m.facts()); d.Reason != "VolumeUnusable" || d.State != core.Failed {
				t.Errorf("it says %+v", d)
			}
			mend()
			select {
			case taken := <-done:
				if f := m.facts(); !taken || !f.Locked || f.Data != core.DataEmpty {
					t.Errorf("taken %t, and then %+v", taken, f)
				}
			case <-time.After(10 * time.Second):
				t.Error("it is not tried again")
			}
		})
	}
}

func TestErrorLogLines(t *testing.T) {
	e := newErrorLog(newLogger(newJournal(t).of("mysqld"), "info"), nil)
	for _, line := range []string{
		"2026-11-21T03:00:05.194570Z 0 [ERROR] [MY-000067] [Server] unknown variable 'x=12'.",
		"2026-11-21T03:00:05.194584Z 0 [Warning] [MY-010119] [Server] something",
		"", "not in the usual form",
	} {
		e.line(line)
	}
	if last, full := e.last(); last != "unknown variable 'x=12'." || full {
		t.Errorf("it remembers %q, full %t", last, full)
	}
	e.line("2026-11-21T03:00:05Z 0 [ERROR] [MY-012640] [InnoDB] Error number 28 means 'No space left on device'")
	if _, full := e.last(); !full {
		t.Error("a full disk was not noticed")
	}
	e.fullAt = e.fullAt.Add(-fullWords)
	if _, full := e.last(); full {
		t.Error("the volume is full for ever after")
	}
}

// mysqld without its files writes the same errors for ever, as fast as it can.
func TestAFloodOfErrorsIsLeftOut(t *testing.T) {
	var out bytes.Buffer
	e := newErrorLog(newLogger(&out, "info"), nil)
	const lines = 100_000
	begun := time.Now()
	flood := strings.Repeat("2026-11-21T03:00:05.194570Z 0 [ERROR] [MY-012592] [InnoDB] Operating system error "+
		"number 9 in a file operation.\n", lines)
	e.read(strings.NewReader(flood + "2026-11-21T03:00:06Z 0 [ERROR] [MY-012640] [InnoDB] Error number 28 means 'No " +
		"space left on device'\n"))
	forwarded := strings.Count(out.String(), "MY-012592")
	told := regexp.MustCompile(`"leftOut":(\d+)`).FindAllStringSubmatch(out.String(), -1)
	leftOut := 0
	for _, m := range told {
		n, err := strconv.Atoi(m[1])
		must(t, err)
		leftOut += n
	}
	if forwarded < linesAtOnce || forwarded > lines/2 || forwarded+leftOut < lines {
		t.Errorf("of %d lines %d are passed on, and %d said to be left out", lines, forwarded, leftOut)
	}
	if took := time.Since(begun); len(told) > int(took/leftOutTold)+2 {
		t.Errorf("in %s it is told %d times how many were left out", took, len(told))
	}
	if last, full := e.last(); !full || !strings.Contains(last, "No space left") {
		t.Errorf("what matters in the flood is lost: %q, full %t", last, full)
	}
}
