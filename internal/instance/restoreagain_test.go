package instance

import (
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/store"
)

func TestARestoreThatFailsBeginsAnewLessAndLessOften(t *testing.T) {
	var failed restoreFailures
	var pauses []string
	for range 9 {
		failed = failed.another(7)
		pauses = append(pauses, failed.pause(restoreAgain).String())
	}
	if got := strings.Join(pauses, " "); got != "30s 1m0s 2m0s 4m0s 8m0s 16m0s 32m0s 1h0m0s 1h0m0s" {
		t.Errorf("it waits for %s", got)
	}
	if got := failed.another(8); got.Times != 1 {
		t.Errorf("once the Cluster is changed it has failed %d times", got.Times)
	}
	if got := (restoreFailures{Times: 3}).pause(restoreFullAgain); got != 20*time.Minute {
		t.Errorf("a volume that was full three times is filled again after %s", got)
	}
	if got := (restoreFailures{Times: 1}).pause(5 * time.Second); got != restoreAgain {
		t.Errorf("what would soon be tried again is fetched again after %s", got)
	}
}

// What an attempt has found damaged is read before the next one fetches anything, whichever manager makes it. Once it
// is mended in the store, the restore goes through.
func TestADamagedBackupIsFetchedOnce(t *testing.T) {
	inAll(t)
	from, source, _, dir := backedUp(t)
	from.crashManager(source)
	s, err := store.Open(dir)
	must(t, err)
	sound := damageBackup(t, s)

	w := from.restoringTo(dir, "", recovery.Target{Immediate: true})
	one := w.start(1)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	fails := func() {
		t.Helper()
		r := w.await(one, "failed", func(r core.Report) bool {
			return r.State == core.Failed && one.remembers().RestoreFailures.Times > 0
		})
		waits := time.Until(one.m.facts().Problem.RetryAt)
		if is := one.remembers().RestoreFailures; !strings.Contains(r.Message, "PartDamaged") || waits > restoreAgain ||
			is.Times != 1 || len(is.Suspects.Backups) != 1 {
			t.Errorf("it begins anew after %s, remembers %+v, and says %s", waits, is, r.Message)
		}
	}
	fails()
	w.crashManager(one)
	one = w.start(1)
	fails()
	for key, text := range sound {
		must(t, s.Put(t.Context(), key, []byte(text)))
	}
	one.m.update(func(s *state) { s.mysqld.problem.RetryAt = time.Now() })
	w.awaitPrimary(one, epoch)
}

// damageBackup changes a byte in the middle of each large object of the backups, and returns what they were.
func damageBackup(t *testing.T, s store.Store) (sound map[string]string) {
	t.Helper()
	sound = map[string]string{}
	for key, text := range stored(t, s) {
		if !strings.HasPrefix(key, "db/base/") || len(text) < 1<<16 {
			continue
		}
		sound[key] = text
		other := []byte(text)
		other[len(other)/2] ^= 1
		must(t, s.Put(t.Context(), key, other))
	}
	if len(sound) == 0 {
		t.Fatal("no part of the backup is large")
	}
	return sound
}
