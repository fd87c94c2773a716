package clone

import (
	"maps"
	"os"
	"testing"
	"time"

	"cnmsql.co/test/zoo"
)

// TestAgainstMysqld has one donor for all of its parts.
func TestAgainstMysqld(t *testing.T) {
	donor := newServer(t)
	donor.Initialize()
	donor.start(1)
	donor.fill(2)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *server)
	}{
		{"Refused", refusedByTheDonor},
		{"MemoryIsBounded", memoryIsBounded},
		{"SecondCloneIsRefused", secondClone},
		{"TwoServersAreRefused", twoServersAreRefused},
		{"GivenUp", givenUp},
		{"ConnectionIsCut", connectionIsCut},
		{"EncryptedIsRefused", encryptedIsRefused},
		{"CommitsHang", commitsHang},
		{"AppliedLive", appliedLive},
		{"RecordedUnderLoadAndDDLAndReplayed", recordedAndReplayed},
		{"EncryptedLogsAreRefused", encryptedLogsAreRefused},
	} {
		t.Run(step.name, func(t *testing.T) { step.run(t, donor) })
	}
}

// recordedAndReplayed: a snapshot is cut into parts while the donor is written to and its
// schema changes; a server on what the parts restore catches up with the donor, and has
// the same in all tables.
func recordedAndReplayed(t *testing.T, donor *server) {
	parts := newStore(t)
	cutter := NewCutter(parts, 8<<20)
	stop := zoo.Load(donor.Test)
	m := &zoo.Meddler{Server: donor.Test}
	blocks, rounds := 0, 0
	began := time.Now()
	err := Snapshot(t.Context(), donor.donor(), &hooks{
		Consumer: cutter,
		take: func(r Record) error {
			if r.IsData() {
				if blocks++; blocks == 20 {
					rounds++
					m.Round("DROP DATABASE doomed")
				}
			}
			return nil
		},
		accept: func(s State) error {
			if s == StateFileCopy || s == StatePageCopy {
				rounds++
				m.Round()
			}
			return nil
		},
	})
	meddled := m.Wait()
	statements := stop()
	must(t, err)
	must(t, cutter.Finish(t.Context()))
	must(t, meddled)
	t.Logf("%d statements in %s, %d parts, accepted %v", statements, time.Since(began),
		len(parts.infos), parts.accepted)
	t.Logf("%d rounds of DDL, %d of them were not done within their state", rounds, m.Slow)

	for _, s := range []State{StatePageCopy, StateRedoCopy} {
		if made, renamed, dropped := parts.changes(s); made == 0 || renamed == 0 || dropped == 0 {
			t.Errorf("before %s DDL made %d files, renamed %d and dropped %d: that tells too little", s,
				made, renamed, dropped)
		}
	}

	restored := newServer(t)
	must(t, os.Mkdir(restored.Data(), 0o755))
	replay(t, parts, restored.Data())
	root, err := parts.replay(t, 3)
	must(t, err)
	sameFiles(t, root, restored.Data())
	restored.start(2)
	follow(t, restored, donor)
	compare(t, restored, donor)
	// What the donor's redo log has of the table that was encrypted, only the first
	// recovery of a clone forgives.
	restored.Stop()
	restored.start(2)
	restored.Exec("CREATE DATABASE doomed")
	restored.Kill()
	restored.start(2)
	zoo.Checksums(restored.Test)
}

// changes counts what DDL did to files before a state.
func (s *store) changes(state State) (made, renamed, dropped int) {
	known := map[uint32]bool{}
	for i := range s.infos {
		for _, r := range s.notes[i] {
			d, ok := r.Descriptor.(File)
			if !ok || d.Name == "" {
				continue
			}
			switch {
			case d.State != state:
			case d.Flags&fileDeleted != 0:
				dropped++
			case d.Flags&fileRenamed != 0:
				renamed++
			case !known[d.Index]:
				made++
			}
			known[d.Index] = true
		}
	}
	return made, renamed, dropped
}

func replay(t *testing.T, parts *store, dir string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer func() { must(t, root.Close()) }()
	applier := NewApplier(root)
	must(t, Replay(t.Context(), parts.from, parts.stream(t), applier))
	must(t, applier.Finish(t.Context()))
}

// follow waits until the restored server has applied all that the donor has done since.
func follow(t *testing.T, restored, donor *server) {
	t.Helper()
	t.Logf("restored with %s", restored.Text("SELECT @@gtid_executed"))
	restored.Exec("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=?, SOURCE_USER='backup', "+
		"SOURCE_PASSWORD='secret', "+
		"SOURCE_SSL=1, SOURCE_AUTO_POSITION=1", donor.Port)
	restored.Exec("START REPLICA")
	want := donor.Text("SELECT @@gtid_executed")
	if got := restored.Text("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 30)", want); got != "0" {
		t.Fatalf("the restored server does not catch up: it has %s, and the donor %s; %s",
			restored.Text("SELECT @@gtid_executed"), want,
			restored.Text("SELECT GROUP_CONCAT(last_error_message) FROM "+
				"performance_schema.replication_applier_status_by_worker"))
	}
	if got := restored.Text("SELECT @@gtid_executed"); got != want {
		t.Errorf("the restored server has %s, and the donor %s", got, want)
	}
}

func compare(t *testing.T, restored, donor *server) {
	t.Helper()
	want, got := zoo.Checksums(donor.Test), zoo.Checksums(restored.Test)
	if !maps.Equal(got, want) {
		t.Errorf("contents differ: restored %v, donor %v", got, want)
	}
	t.Logf("%d tables are equal", len(want))
}
