package instance

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// stored is all that a store has, by key.
func stored(t *testing.T, s store.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for o, err := range s.List(t.Context(), "") {
		must(t, err)
		in, err := s.Get(t.Context(), o.Key)
		must(t, err)
		text, err := io.ReadAll(in)
		must(t, err)
		must(t, in.Close())
		all[o.Key] = string(text)
	}
	return all
}

// untouched says what of a store is not what it was.
func untouched(t *testing.T, s store.Store, before map[string]string) {
	t.Helper()
	after := stored(t, s)
	for key, text := range after {
		if was, is := before[key]; !is || was != text {
			t.Errorf("%s was written", key)
		}
	}
	for key := range before {
		if _, is := after[key]; !is {
			t.Errorf("%s was deleted", key)
		}
	}
}

// aLog has, beside its index, the binary log of a real server.
func aLog(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	log, err := os.ReadFile("../binlog/testdata/writes.bin")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "binlog.000001"), log, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "binlog.index"), []byte("./binlog.000001\n"), 0o600))
	return dir
}

// writing is a manager that takes writes in epoch 1, with a binary log and without a server, and
// archives to the store of a directory.
func writing(data, dir string) *manager {
	m := newManager(Options{Instance: "db-1", Dirs: Dirs{Data: data, Archive: dir}, Log: io.Discard}.withDefaults())
	m.lease = &lease{}
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", UID: "uid-1"}}
	archives(c)
	m.st.cluster.object, m.st.cluster.view = c, &agent.Cluster{Epoch: 1}
	m.st.mysqld.writable, m.st.status.server = 1, &core.Server{UUID: "server-1"}
	return m
}

// TestAnArchiveOfAnotherClusterIsLeftAlone: one of the same name wrote there first. Each of the
// attempts of a minute ends the same way.
func TestAnArchiveOfAnotherClusterIsLeftAlone(t *testing.T) {
	dir := storetest.Dir(t)
	s, err := store.Open(dir)
	must(t, err)
	must(t, backup.Claim(t.Context(), s, backup.Identity{Cluster: "db", Namespace: "elsewhere", UID: "foreign"}))
	before, data := stored(t, s), aLog(t)
	var a *core.Archive
	synctest.Test(t, func(t *testing.T) {
		m := writing(data, dir)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { m.archiver.keepArchived(ctx); close(ended) }()
		<-time.After(time.Minute)
		cancel()
		<-ended
		snap, _ := m.snapshot(time.Now())
		a = snap.Report.Archive
	})
	untouched(t, s, before)
	if a == nil || a.Failure != "ArchiveTaken" || a.FailedAt.IsZero() {
		t.Fatalf("it says of the archive: %+v", a)
	}
	for _, word := range []string{"foreign", "elsewhere", "uid-1"} {
		if !strings.Contains(a.Message, word) {
			t.Errorf("it does not name %s: %s", word, a.Message)
		}
	}
}

// What was counted before says nothing of what piles up since.
func TestWhatWaitsIsNotKnownWhileEachAttemptFails(t *testing.T) {
	m := writing(aLog(t), storetest.Dir(t))
	m.archiver.said = &core.Archive{PendingFiles: new(0), PendingBytes: new(int64(0)), File: "binlog.000001"}
	m.archiver.ships = func(_ context.Context, _ facts.Term, since time.Time) (time.Time, error) {
		return since, store.Unreachable
	}
	var past attempts
	if is := m.archiver.fails(t.Context(), m.archives(), &past); !is {
		t.Error("it has not failed")
	}
	if a := m.archiver.report(); a == nil || a.PendingFiles != nil || a.PendingBytes != nil || a.File == "" {
		t.Errorf("it says %+v", a)
	}
}

// replacedFor has a manager archive for so long which the store says was replaced. Each attempt takes no time.
// hears is when it hears of it; it tells when attempts began, and what is said of the archive then.
func replacedFor(t *testing.T, d, hears time.Duration) (began []time.Duration, said *core.Archive) {
	t.Helper()
	data, dir := aLog(t), storetest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		m, start := writing(data, dir), time.Now()
		m.archiver.ships = func(_ context.Context, _ facts.Term, since time.Time) (time.Time, error) {
			began = append(began, time.Since(start))
			if time.Since(start) >= hears {
				m.update(func(s *state) { s.mysqld.writable++ })
			}
			return since, fmt.Errorf("the archive has a branch of epoch 2 already: %w", archive.PromotionNotHeld)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { m.archiver.keepArchived(ctx); close(ended) }()
		<-time.After(d)
		cancel()
		<-ended
		said = m.archiver.report()
	})
	return began, said
}

func TestWhoWasReplacedAndHasNotHeardOfItAsksTheStoreNowAndThen(t *testing.T) {
	const never = time.Hour
	began, said := replacedFor(t, 50*time.Second, never)
	if len(began) > 10 || said != nil {
		t.Errorf("in the first minute it began at %v, and says %+v", began, said)
	}
	began, said = replacedFor(t, 90*time.Second, never)
	if len(began) > 18 || said == nil || said.Failure != "PromotionNotHeld" || said.RPO < 60 ||
		!strings.Contains(said.Message, "has not heard of one") {
		t.Errorf("after it, it began at %v, and says %+v", began, said)
	}
}

func TestWhoHearsThatItWasReplacedGoesOnAtOnce(t *testing.T) {
	began, said := replacedFor(t, 3500*time.Millisecond, 0)
	if len(began) != 3 || said != nil {
		t.Errorf("it began at %v, and says %+v", began, said)
	}
}

// The operator has a Backup made when it hears of a place, which holds what
// the branch began with only if that was written before.
func TestThePlaceIsToldOnceItsBranchIsThere(t *testing.T) {
	data, dir := aLog(t), storetest.Dir(t)
	s, err := store.Open(dir)
	must(t, err)
	synctest.Test(t, func(t *testing.T) {
		m := writing(data, dir)
		shipper, err := archive.NewShipper(archive.Config{Store: s, Prefix: backup.LogPrefix("db"), Cluster: "uid-1",
			Epoch: 1, Instance: "db-1", ServerUUID: "server-1", Index: filepath.Join(data, "binlog.index"),
			Executed:  func(context.Context) (gtid.Set, error) { return gtid.Set{}, nil },
			May:       func(context.Context) error { return nil },
			TargetRPO: time.Minute})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var beside sync.WaitGroup
		beside.Go(func() { m.archiver.watchArchive(ctx, shipper, "s3://b", m.archives()) })
		<-time.After(3 * time.Second)
		if a := m.archiver.report(); a == nil || a.Place != "" || a.PendingFiles != nil {
			t.Errorf("without a branch it says %+v", a)
		}
		beside.Go(func() { _ = shipper.Run(ctx) })
		<-time.After(3 * time.Second)
		if a := m.archiver.report(); a == nil || a.Place != "s3://b" || a.PendingFiles == nil {
			t.Errorf("with its branch it says %+v", a)
		}
		cancel()
		beside.Wait()
	})
}
