//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

const (
	// gateLimit is how long a client may wait while its server's volume is nearly full: the manager looks every half
	// minute, and a mysqld that has found no room tries again once a minute.
	gateLimit = 100 * time.Second
	// askedWithin is how soon a Backup is made once a gap is known.
	askedWithin = 10 * time.Second
)

// TestPurgeGate fills a volume with binary logs that the object store does not take. Writes come first: logs that
// are not archived go before the volume is full, and clients write on. When the store is back the gap is told, a
// Backup is made at once, and a restore from it to the latest has every acknowledged row.
func TestPurgeGate(t *testing.T) {
	onlyInAll(t)
	w, elsewhere := newWorld(t, "gate"), newWorld(t, "gate-store")
	store, err := bed.StartObjectStore(w.ctx, elsewhere.key.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	b := &backedUp{w, store}
	b.manifest(store.Credentials(w.key.Namespace))
	volume := w.smallVolume("gate", "1536m")
	b.apply("  instances: 1\n  storage: {size: 1Gi, storageClass: gate}\n  backup: {objectStore: " + store.Spec() +
		", continuousArchiving: {enabled: true, targetRPOSeconds: 1, maxBinlogSizeMB: 16}}\n")
	b.healthy(3 * time.Minute)
	b.sql("CREATE TABLE app.filler (id INT PRIMARY KEY, v MEDIUMBLOB)")
	b.archivesAll()
	l, leader := b.startWriting(), b.leader()

	goOn := b.hangStore()
	b.opensGate(volume)
	goOn()
	c := b.becomes(3*time.Minute, hasGap)
	b.measures(leader, "archive_gap", 1)
	b.t.Log(meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving).Message)
	b.eventSays(string(core.ReasonArchiveGap))
	b.eventSays(string(core.ReasonGapBackup))
	b.completes(b.madeAfterGap(c.Status.ContinuousArchiving.MissingSince))
	b.archives(metav1.ConditionTrue, 5*time.Minute)
	b.measures(leader, "archive_gap", 0)

	if gap := l.stopAndLoseNothing().LongestGap.Duration(); gap > gateLimit {
		t.Errorf("a client could write nothing for %s; at most %s is wanted", gap, gateLimit)
	}
	b.isRestored(b.archivesAll(), store.Spec())
}

// opensGate fills the volume while the store hangs, and returns when binary logs are gone of which nothing is
// archived.
func (b *backedUp) opensGate(volume string) {
	b.t.Helper()
	logs := b.logsOn(volume)
	current, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(logs[len(logs)-1]), "."))
	if err != nil {
		b.t.Fatal(err)
	}
	stop := b.fills(volume)
	is := b.archives(metav1.ConditionFalse, 2*time.Minute)
	b.t.Logf("%s: %s", is.Reason, is.Message)
	// The log that was written to, or the next one, is open for the part that waits for the store.
	until := fmt.Sprintf("binlog.%06d", current+3)
	err = wait.PollUntilContextTimeout(b.ctx, 500*time.Millisecond, 6*time.Minute, true,
		func(context.Context) (bool, error) { return filepath.Base(b.logsOn(volume)[0]) >= until, nil })
	stop()
	logs = b.logsOn(volume)
	free, unknown := freeOn(volume)
	b.t.Logf("%.1f %% of the volume are free (%v), with %d binary logs from %s on; the last one that could be "+
		"archived is binlog.%06d", 100*free, unknown, len(logs), filepath.Base(logs[0]), current+1)
	if err != nil {
		b.t.Fatalf("%s was to be the first binary log: %v", until, err)
	}
	said := b.kubectl("-n", b.key.Namespace, "logs", b.primary(), "-c", "mysql")
	if !strings.Contains(said, "purges binary logs that have not expired") ||
		!strings.Contains(said, `"notArchived":true`) {
		b.t.Error("the primary's log does not tell that logs were purged before they were archived")
	}
}

// logsOn are the binary logs on a volume, oldest first. There is one at least.
func (b *backedUp) logsOn(volume string) []string {
	b.t.Helper()
	logs, err := filepath.Glob(filepath.Join(volume, "data", "binlog.[0-9]*"))
	if err != nil || len(logs) == 0 {
		b.t.Fatalf("there is no binary log on %s: %v", volume, err)
	}
	return logs
}

// freeOn is the share of a volume that is free.
func freeOn(volume string) (share float64, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(volume, &fs); err != nil {
		return 0, err
	}
	return float64(fs.Bavail) / float64(fs.Blocks), nil
}

// fills writes what cannot be compressed, over and over in one row, until it is stopped: as fast as it can, and
// slowly once the volume is nearly full, so that the manager looks before it is full.
func (b *backedUp) fills(volume string) (stop func()) {
	b.t.Helper()
	e, err := bed.Endpoint(b.ctx, b.key, "rw")
	if err != nil {
		b.t.Fatal(err)
	}
	db, err := e.OpenWithin(2 * time.Minute)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = db.Close() })
	ctx, cancel := context.WithCancel(b.ctx)
	b.t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() {
		var err error
		for err == nil && ctx.Err() == nil {
			size, pause := 1<<20, time.Duration(0)
			var free float64
			if free, err = freeOn(volume); err != nil {
				break
			}
			if free < 0.07 {
				size, pause = 128<<10, 200*time.Millisecond
			}
			payload := make([]byte, size)
			rand.Read(payload) // never fails
			_, err = db.ExecContext(b.ctx, "REPLACE INTO app.filler VALUES (1, ?)", payload)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
		ended <- err
	}()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("writing ended while the volume was nearly full: %v", err)
		}
	})
}

// madeAfterGap is the one Backup that there is, which was made because of a gap.
func (b *backedUp) madeAfterGap(known *metav1.Time) string {
	b.t.Helper()
	var all v1alpha1.BackupList
	if err := bed.Client.List(b.ctx, &all, client.InNamespace(b.key.Namespace)); err != nil {
		b.t.Fatal(err)
	}
	if len(all.Items) != 1 || !strings.HasPrefix(all.Items[0].Name, b.key.Name+"-gap-") {
		b.t.Fatalf("one Backup was to be made, and there are %d: %+v", len(all.Items), all.Items)
	}
	made := all.Items[0]
	if took := made.CreationTimestamp.Sub(known.Time); took > askedWithin {
		b.t.Errorf("the Backup was made %s after the gap was known; at most %s is wanted", took, askedWithin)
	}
	return made.Name
}
