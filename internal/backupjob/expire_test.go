package backupjob

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// keeping is a world whose backup is in the store already, and another one that is older;
// its Task says what to keep.
func keeping(t *testing.T, r *Retention) (Options, store.Store) {
	t.Helper()
	o := world(t, v1alpha1.BackupRunning, "backup-uid")
	changeTask(t, o, func(task *Task) { task.Retention = r })
	s, err := store.Open(o.StoreDir)
	must(t, err)
	began := time.Date(2026, 11, 20, 21, 0, 0, 0, time.UTC)
	for i, id := range []string{"older", id} {
		at := began.AddDate(0, 0, i)
		m := &backup.Manifest{Summary: backup.Summary{ID: id, Method: "clone", Cluster: backup.Identity{Format: 1,
			Cluster: "db", UID: "cluster-uid"},
			Begin: at, Point: at.Add(200 * time.Millisecond), End: at.Add(700 * time.Millisecond), RawSize: 2,
			StoredSize: 1},
			Parts: []backup.Part{{Name: "part-00000001-000000.zst", State: clone.StateFileCopy.String(), Raw: 2,
				Stored: 1, Records: 1}}}
		text, err := m.Encode()
		must(t, err)
		must(t, s.Create(t.Context(), "db/base/"+id+"/part-00000001-000000.zst", []byte("x")))
		must(t, s.Create(t.Context(), "db/base/"+id+"/manifest.json", text))
	}
	return o, s
}

func changeTask(t *testing.T, o Options, how func(*Task)) {
	t.Helper()
	task, err := readTask(o.StoreDir)
	must(t, err)
	how(&task)
	text, err := json.Marshal(task)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(o.StoreDir, FileTask), text, 0o600))
}

func TestWhatHasExpiredGoesAfterTheBackup(t *testing.T) {
	for name, c := range map[string]struct {
		keep    *Retention
		owner   string
		removed string
		held    string
		left    int
	}{
		"the older one":    {&Retention{Minimum: 1}, "cluster-uid", "older", "", 1},
		"two have to stay": {&Retention{Minimum: 2}, "cluster-uid", "", "", 2},
		"neither is old enough": {&Retention{Window: 1000 * 24 * time.Hour, Minimum: 1}, "cluster-uid", "",
			"NoBackupOldEnough", 2},
		"all of another cluster's":   {&Retention{Minimum: 1}, "another-uid", "", backup.ArchiveTaken.Name, 2},
		"nobody wants any to expire": {nil, "cluster-uid", "", "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			o, s := keeping(t, c.keep)
			must(t, backup.Claim(t.Context(), s, backup.Identity{Cluster: "db", Namespace: "ns", UID: c.owner}))
			must(t, Run(t.Context(), o))
			got := status(t, o)
			if got.Phase != v1alpha1.BackupCompleted || (got.Retention != nil) != (c.keep != nil) {
				t.Fatalf("%+v", got)
			}
			all, err := backup.List(t.Context(), s, "db")
			must(t, err)
			if len(all) != c.left {
				t.Errorf("%d are left", len(all))
			}
			if got.Retention == nil {
				return
			}
			r, held := got.Retention, ""
			if r.Held != nil {
				held = r.Held.Reason
			}
			if strings.Join(r.RemovedBackups, " ") != c.removed || held != c.held || r.RanAt.IsZero() ||
				(r.KeptSince == nil) != (c.held == backup.ArchiveTaken.Name) {
				t.Errorf("%+v, held by %q", r, held)
			}
		})
	}
}

// TestAPolicyThatIsLengthenedMeanwhileHolds has the user change it after the Job has begun.
func TestAPolicyThatIsLengthenedMeanwhileHolds(t *testing.T) {
	o, s := keeping(t, nil)
	must(t, backup.Claim(t.Context(), s, backup.Identity{Cluster: "db", Namespace: "ns", UID: "cluster-uid"}))
	must(t, Run(t.Context(), o))
	began, err := readTask(o.StoreDir)
	must(t, err)
	began.Retention = &Retention{Minimum: 1}
	tell, err := newTeller(t.Context(), o, began)
	must(t, err)
	for _, c := range []struct {
		now  *Retention
		left int
	}{{nil, 2}, {&Retention{Minimum: 2}, 2}, {&Retention{Window: 1000 * 24 * time.Hour, Minimum: 1}, 2},
		{&Retention{Minimum: 1}, 1}} {
		changeTask(t, o, func(t *Task) { t.Retention = c.now })
		o.expire(t.Context(), s, began, tell)
		all, err := backup.List(t.Context(), s, "db")
		must(t, err)
		if len(all) != c.left {
			t.Errorf("with %+v by now %d are left", c.now, len(all))
		}
	}
}

// TestTheMomentsThatAreToldCanBeRestored looks whether none is before the backup that it is of: a status
// has whole seconds.
func TestTheMomentsThatAreToldCanBeRestored(t *testing.T) {
	o, s := keeping(t, &Retention{Minimum: 2})
	must(t, backup.Claim(t.Context(), s, backup.Identity{Cluster: "db", Namespace: "ns", UID: "cluster-uid"}))
	must(t, Run(t.Context(), o))
	all, err := backup.List(t.Context(), s, "db")
	must(t, err)
	got := status(t, o)
	if since := got.Retention.KeptSince; since.Time.Before(all[1].Point) || got.StoppedAt.Time.Before(all[0].End) {
		t.Errorf("of %s and %s it tells %s and %s", all[1].Point, all[0].End, since, got.StoppedAt)
	}
}

func TestABackupIsRemovedByItsID(t *testing.T) {
	o, s := keeping(t, nil)
	for range 2 { // what is gone already is no error
		must(t, Remove(t.Context(), o.StoreDir, o.Log))
		all, err := backup.List(t.Context(), s, "db")
		must(t, err)
		if len(all) != 1 || all[0].ID != "older" || all[0].Err != nil {
			t.Errorf("%+v", all)
		}
	}
	must(t, os.Remove(filepath.Join(o.StoreDir, store.FileConfig)))
	if err := Remove(t.Context(), o.StoreDir, o.Log); !errors.Is(err, store.Misconfigured) {
		t.Errorf("%v", err)
	}
}

// TestMergingIsTold: also where nothing expires. Nothing is old enough here to be merged.
func TestMergingIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		merges              bool
		owner, branch, held string
	}{
		"nothing to do":                        {true, "cluster-uid", "", ""},
		"all of another cluster's":             {true, "another-uid", "", backup.ArchiveTaken.Name},
		"a branch of the archive of another's": {true, "cluster-uid", "another-uid", backup.ArchiveTaken.Name},
		"not the Cluster's own store":          {false, "another-uid", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, s := keeping(t, nil)
			changeTask(t, o, func(task *Task) { task.Merges = c.merges })
			must(t, backup.Claim(t.Context(), s, backup.Identity{Cluster: "db", Namespace: "ns", UID: c.owner}))
			if c.branch != "" {
				text, err := json.Marshal(archive.Branch{Format: 1, Cluster: c.branch, Epoch: 3})
				must(t, err)
				must(t, s.Create(t.Context(), "db/log/0000000003/branch.json", text))
			}
			must(t, Run(t.Context(), o))
			got, held := status(t, o), ""
			if got.Merging != nil {
				held = got.Merging.Held.Reason
			}
			if got.Phase != v1alpha1.BackupCompleted || held != c.held {
				t.Errorf("%+v", got)
			}
		})
	}
}
