package instance

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"filippo.io/age"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// logged are transactions of the server that wrote aLog, of 1 to 7.
func logged(numbers string) gtid.Set {
	return gtid.MustParse("ed99f45c-e6c0-11f1-8503-02fc00000001:" + numbers)
}

// ships has the primary of an epoch, which has executed some of aLog, archive for a minute of
// made-up time.
func ships(t *testing.T, dir string, epoch int64, start, executed gtid.Set) {
	t.Helper()
	s, err := store.Open(dir)
	must(t, err)
	log := aLog(t)
	synctest.Test(t, func(t *testing.T) {
		shipper, err := archive.NewShipper(archive.Config{Store: s, Prefix: backup.LogPrefix("db"), Cluster: "uid-1",
			Epoch: epoch, Instance: fmt.Sprintf("db-%d", epoch), ServerUUID: fmt.Sprintf("server-%d", epoch),
			Start: start, Index: filepath.Join(log, "binlog.index"), TargetRPO: time.Second,
			Key:      func() (seal.Key, error) { return seal.Read(dir) },
			Executed: func(context.Context) (gtid.Set, error) { return executed, nil },
			May:      func(context.Context) error { return nil }})
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		must(t, shipper.Run(ctx))
	})
}

// afterAFailover has the archive of a primary whose last two transactions, which it had archived,
// its successor lacked. With a key it is encrypted.
func afterAFailover(t *testing.T, key string) (dir string) {
	t.Helper()
	dir = storetest.Dir(t)
	if key != "" {
		must(t, os.WriteFile(filepath.Join(dir, seal.FileIdentity), []byte(key), 0o600))
	}
	ships(t, dir, 1, gtid.Set{}, logged("1-7"))
	ships(t, dir, 2, logged("1-5"), logged("1-5"))
	return dir
}

// lists is what is said of all that was lost.
func lists(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	must(t, Lost(t.Context(), dir, "db", 0, &out))
	return out.String()
}

func TestWhatAFailoverLostIsListedAndRead(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	must(t, err)
	for name, key := range map[string]string{"plain": "", "encrypted": key.String()} {
		t.Run(name, func(t *testing.T) {
			dir := afterAFailover(t, key)
			lines := strings.Split(lists(t, dir), "\n")
			if len(lines) != 3 || lines[2] != "" {
				t.Fatalf("it lists %q", lines)
			}
			if got := strings.Fields(lines[0]); !slices.Equal(got, strings.Fields(
				"EPOCH PRIMARY TRANSACTIONS FIRST COMMIT LAST COMMIT GTIDS")) {
				t.Errorf("above it stands %q", got)
			}
			if got := strings.Fields(lines[1]); !slices.Equal(got, []string{"1", "db-1", "2",
				"2026-11-22T22:07:50.520319Z", "2026-11-22T22:07:50.530878Z", logged("6-7").String()}) {
				t.Errorf("it lists %q", got)
			}
			var log bytes.Buffer
			must(t, Lost(t.Context(), dir, "db", 1, &log))
			if got := transactionsOf(t, log.String()); !got.Equal(logged("6-7")) {
				t.Errorf("the log has %s", got)
			}
			log.Reset()
			err := Lost(t.Context(), dir, "db", 2, &log)
			if err == nil || !strings.Contains(err.Error(), "of epoch 2 was lost") || log.Len() > 0 {
				t.Errorf("of the epoch that goes on: %v, %d bytes", err, log.Len())
			}
		})
	}
}

func TestWithoutALossNoneIsListed(t *testing.T) {
	dir := storetest.Dir(t)
	ships(t, dir, 1, gtid.Set{}, logged("1-7"))
	ships(t, dir, 2, logged("1-7"), logged("1-7"))
	if got := lists(t, dir); got != "No failover has lost a transaction that was archived.\n" {
		t.Errorf("it says %q", got)
	}
}

func TestAnInstanceWithoutAnArchiveKnowsOfNoLoss(t *testing.T) {
	var out strings.Builder
	err := Lost(t.Context(), t.TempDir(), "db", 0, &out)
	if err == nil || !strings.Contains(err.Error(), "continuousArchiving has to be enabled") || out.Len() > 0 {
		t.Errorf("it says %v, and %q", err, out.String())
	}
}

// spoil replaces the objects of a store whose keys end so.
func spoil(t *testing.T, dir, suffix string) {
	t.Helper()
	s, err := store.Open(dir)
	must(t, err)
	spoilt := 0
	for key := range stored(t, s) {
		if strings.HasSuffix(key, suffix) {
			must(t, s.Put(t.Context(), key, []byte("none")))
			spoilt++
		}
	}
	if spoilt == 0 {
		t.Fatalf("there is no %s", suffix)
	}
}

// TestWhatCannotBeReadMayBeLost: it is told as not known, whether or not something is.
func TestWhatCannotBeReadMayBeLost(t *testing.T) {
	dir := afterAFailover(t, "")
	ships(t, dir, 3, logged("1-5"), logged("1-5"))
	spoil(t, dir, "3/branch.json")
	const why = "1 of the archive's objects cannot be read: "
	got := lists(t, dir)
	if !strings.Contains(got, logged("6-7").String()) || !strings.Contains(got, "not all that may be lost: "+why) {
		t.Errorf("beside a loss it says %q", got)
	}
	dir = afterAFailover(t, "")
	spoil(t, dir, ".binlog.zst")
	if got = lists(t, dir); !strings.HasPrefix(got, "Nothing is known to be lost, but "+why) {
		t.Errorf("of what cannot be read it says %q", got)
	}
	var log bytes.Buffer
	err := Lost(t.Context(), dir, "db", 1, &log)
	if err == nil || !strings.Contains(err.Error(), "of epoch 1 is known to be lost, and "+why) || log.Len() > 0 {
		t.Errorf("of its epoch it says %v", err)
	}
}
